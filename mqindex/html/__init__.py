"""A report as one HTML page with pictures: made of building blocks, without a script, and without a network."""
