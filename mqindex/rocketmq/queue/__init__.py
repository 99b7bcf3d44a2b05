"""Consume queues of every kind, read and written."""
