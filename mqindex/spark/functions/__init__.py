"""Column functions, and functions over whole partitions."""
