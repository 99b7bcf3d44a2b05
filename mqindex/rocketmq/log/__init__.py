"""Commit logs: their messages, read and written."""
