from typing import Any, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from mqindex._native.pieces import Pieces

@final
class RefusedError(Exception):
    args: tuple[int, str, str | None, int, int]

@final
class Frames:
    def __init__(
        self,
        n: int,
        texts: tuple[Pieces, ...],
        numbers: tuple[npt.NDArray[np.int64], ...],
        /,
        *,
        separator: bool,
        append_crc: bool,
        long_topics: bool,
        max_body: int,
        max_frame: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def sizes(self) -> npt.NDArray[np.int32]: ...
    @property
    def phy_offsets(self) -> npt.NDArray[np.int64]: ...
    @property
    def total(self) -> int: ...
    @property
    def encoded(self) -> int: ...
    def append(
        self, fd: int, start: int, buffer: Buffer, phy_offset: int, left: int, most: int, /
    ) -> tuple[int, bool]: ...
    def encode(self, out: Buffer, phy_offset: int, left: int, /) -> tuple[int, bool]: ...

def encode_frame(
    message: Any,
    properties: bytes | None,
    born_host: bytes,
    store_host: bytes,
    queue_offset: int,
    born_timestamp: int,
    store_timestamp: int,
    phy_offset: int,
    rules: Any,
    /,
) -> bytes: ...

WRITERS: int
TEXTS: tuple[str, ...]
NUMBERS: tuple[str, ...]
