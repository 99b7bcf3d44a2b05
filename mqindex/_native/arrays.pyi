from typing import Self, final

from typing_extensions import Buffer

__pyx_capi__: dict[str, object]  # what other kernels cimport; nothing here is for Python

@final
class Pinned:
    def __new__(cls, exporter: Buffer, itemsize: int = 1, writable: bool = False, integers: bool = False) -> Self: ...
    @property
    def n(self) -> int: ...
