"""What is right and wrong with segments and partitions, found once for verify and repair."""
