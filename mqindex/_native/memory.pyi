from typing import Self, final

from typing_extensions import Buffer, disjoint_base

__pyx_capi__: dict[str, object]  # what other kernels cimport; nothing here is for Python

@final
class Block: ...

@final
class Pinned:
    def __new__(cls, exporter: Buffer, itemsize: int = 1, writable: bool = False, flags: int = 8) -> Self: ...
    @property
    def n(self) -> int: ...

@disjoint_base
class Source: ...
