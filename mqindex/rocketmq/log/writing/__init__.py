"""What appends to a commit log."""
