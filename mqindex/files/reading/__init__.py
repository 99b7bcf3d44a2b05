"""How the bytes of files are read."""
