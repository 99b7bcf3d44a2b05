from collections.abc import Iterator
from typing import Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, disjoint_base

from mqindex._native.memory import Source

__pyx_capi__: dict[str, object]  # what other kernels cimport
_Fault: TypeAlias = tuple[str, int, str, str, str]

@disjoint_base
class BatchSource(Source):
    def __new__(cls, buf: Buffer, check_crc: bool) -> Self: ...

@final
class Resync:
    def __new__(cls, buf: Buffer) -> Self: ...
    def next_batch(self, at: int, floor: int, ceiling: int, /) -> int: ...
    def batch_after(self, bad: int, floor: int, ceiling: int, /) -> int: ...

@final
class BatchScan:
    def __init__(
        self,
        buf: Buffer,
        start: int = 0,
        stop: int | None = None,
        /,
        *,
        check_crc: bool = True,
        resync: Resync | None = None,
    ) -> None: ...
    def __iter__(self) -> Iterator[memoryview]: ...
    def __next__(self) -> memoryview: ...
    @property
    def end(self) -> int: ...
    @property
    def fault(self) -> _Fault | None: ...

def find_batch(
    buf: Buffer, start: int, stop: int | None, column: str, target: int, /
) -> tuple[bytes | None, int, _Fault | None]: ...
def find_batches(
    buf: Buffer, stop: int, starts: npt.NDArray[np.int64], times: npt.NDArray[np.int64], /
) -> tuple[npt.NDArray[np.int64], int | None]: ...
def batches_at(buf: Buffer, positions: npt.NDArray[np.int64], /) -> memoryview: ...
def first_not_below(
    values: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    /,
) -> npt.NDArray[np.int64]: ...
