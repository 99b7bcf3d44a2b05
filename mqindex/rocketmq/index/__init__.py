"""Index files and the directory that they roll in."""
