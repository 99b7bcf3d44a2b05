"""How results are written: aside, brought to the disk, renamed into place."""
