"""Segments: one `.log` file, its batches and records."""
