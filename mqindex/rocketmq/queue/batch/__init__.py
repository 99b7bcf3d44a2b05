"""Batch queues."""
