"""Offset, time and transaction indexes: one file each."""
