"""Files that a repair replaces, and how they are put back."""
