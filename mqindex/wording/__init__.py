"""What reports say in words, the same on a terminal and on a page."""
