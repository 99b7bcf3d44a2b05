"""The compiled kernels: they check buffers, drop the GIL, call the C of `src_c`, and raise. Not a public interface."""
