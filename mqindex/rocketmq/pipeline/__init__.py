"""From a log to index files and queues: a look at the store, the stages, and what is between them."""
