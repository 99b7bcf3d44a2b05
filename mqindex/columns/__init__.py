"""Keys, numbers, answers and columns: what goes into the kernels, and what comes out of them."""
