from collections.abc import Iterator
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from mqindex._native.commit_log import FrameWalk

_Text: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]
_Rows: TypeAlias = tuple[dict[str, npt.NDArray[Any] | _Text], int]

def columns_at(
    buf: Buffer, file_start: int, phy_offsets: npt.ArrayLike, sizes: npt.ArrayLike, names: tuple[str, ...], /
) -> _Rows: ...
def texts_among(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], wanted: tuple[bytes, ...], /
) -> npt.NDArray[np.bool_]: ...

@final
class ColumnScanner(FrameWalk):
    def __init__(
        self,
        buf: Buffer,
        file_start: int,
        start: int,
        stop: int,
        names: tuple[str, ...],
        /,
        *,
        check_crc: bool = False,
        max_frames: int = 65536,
        max_bytes: int,
    ) -> None: ...
    def __iter__(self) -> Iterator[_Rows]: ...
    def __next__(self) -> _Rows: ...
