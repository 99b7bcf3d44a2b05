from typing import Any, Self, final

# A node: (format, name, length, null_count, buffers, children)
def export_array(node: tuple[Any, ...]) -> tuple[object, object]: ...
def export_stream(node: tuple[Any, ...]) -> object: ...

@final
class HeldArray: ...

@final
class ArrayStream:
    def __new__(cls, capsule: object, what: str) -> Self: ...

__pyx_capi__: dict[str, object]  # what other kernels cimport
