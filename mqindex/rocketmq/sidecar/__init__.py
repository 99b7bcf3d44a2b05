"""Sidecars of optimised index files: the fence and the key filter, written, read, checked."""
