"""Dispatch (reput): from a log into queues and index while the log grows."""
