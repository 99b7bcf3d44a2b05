"""Partitions as a consumer sees them: records, offsets, and their transactions."""
