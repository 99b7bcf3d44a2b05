"""Partitions and log dirs: their files, what a consumer reads of them, and their transactions."""
