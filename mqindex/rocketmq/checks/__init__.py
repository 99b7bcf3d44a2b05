"""What is right and wrong with a store, found once for verify and repair."""
