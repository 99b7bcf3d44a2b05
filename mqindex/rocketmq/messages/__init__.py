"""Messages of a commit log, decoded: one at a time and as columns."""
