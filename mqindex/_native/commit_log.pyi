from collections.abc import Iterator
from typing import Any, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, disjoint_base

from mqindex._native.memory import Source

_Fault: TypeAlias = tuple[int, str, str | None, str, str]

def frame_dtype() -> np.dtype[np.void]: ...

@disjoint_base
class LogBuffer(Source):
    def __new__(cls, buf: Buffer, file_start: int, check_crc: bool) -> Self: ...

def find_frame(buf: Buffer, file_start: int, start: int, stop: int, /) -> int: ...
def last_record(buf: Buffer, file_start: int, start: int, stop: int, /) -> tuple[int, int]: ...
def scan_at(
    buf: Buffer, file_start: int, phy_offsets: npt.ArrayLike, /, *, check_crc: bool = False
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]: ...

@disjoint_base
class FrameWalk:
    def __init__(
        self,
        buf: Buffer,
        file_start: int,
        start: int,
        stop: int,
        /,
        *,
        check_crc: bool = False,
        max_frames: int = 65536,
    ) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    @property
    def end(self) -> int: ...
    @property
    def fault(self) -> _Fault | None: ...
    @property
    def blank(self) -> int: ...

@final
class Scanner(FrameWalk):
    def __iter__(self) -> Iterator[npt.NDArray[Any]]: ...
    def __next__(self) -> npt.NDArray[Any]: ...
