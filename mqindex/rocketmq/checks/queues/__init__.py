"""Queues of every kind against the log."""
