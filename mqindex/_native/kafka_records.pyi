from typing import Any, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

def row_dtype() -> np.dtype[np.void]: ...
def header_dtype() -> np.dtype[np.void]: ...
def compressed_part(
    buf: Buffer, rows: npt.NDArray[Any], number: int, /, *, path: str | None = None
) -> tuple[int, int]: ...
def find_record(
    buf: Buffer,
    payload: Buffer | None,
    rows: npt.NDArray[Any],
    number: int,
    timestamp: int,
    min_offset: int,
    exact: bool,
    /,
    *,
    path: str | None = None,
) -> tuple[int, int] | None: ...
def first_offset(payload: Buffer, rows: npt.NDArray[Any], number: int, /, *, path: str | None = None) -> int: ...

@final
class RecordColumns:
    def __new__(
        cls,
        *,
        keys: bool = True,
        values: bool = True,
        headers: bool = True,
        max_rows: int = 65536,
        max_bytes: int = 67108864,
        path: str | None = None,
    ) -> RecordColumns: ...
    def __len__(self) -> int: ...
    def add(self, buf: Buffer, rows: npt.NDArray[Any], number: int, /) -> tuple[int, bool]: ...
    def add_payload(self, payload: Buffer, rows: npt.NDArray[Any], number: int, /) -> bool: ...
    def take(self) -> tuple[Buffer, Buffer, Buffer, Buffer, Buffer, Buffer]: ...
