__pyx_capi__: dict[str, object]  # what other kernels cimport; nothing here is for Python
