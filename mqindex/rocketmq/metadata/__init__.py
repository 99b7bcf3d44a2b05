"""The small files beside log, queues and index."""
