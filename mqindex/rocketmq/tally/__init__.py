"""What is counted for a health report while verify reads: nothing is read for it alone."""
