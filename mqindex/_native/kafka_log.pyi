from collections.abc import Callable, Iterator
from typing import TypeAlias, final

from typing_extensions import Buffer

_Fault: TypeAlias = tuple[str, int, str, str, str]

@final
class BatchScan:
    def __init__(self, buf: Buffer, start: int = 0, stop: int | None = None, /, *, check_crc: bool = True) -> None: ...
    def __iter__(self) -> Iterator[memoryview]: ...
    def __next__(self) -> memoryview: ...
    @property
    def end(self) -> int: ...
    @property
    def fault(self) -> _Fault | None: ...

def find_batch(
    buf: Buffer, start: int, stop: int | None, column: str, target: int, /
) -> tuple[bytes | None, int, _Fault | None]: ...

@final
class Recovered:
    def __init__(
        self,
        buf: Buffer,
        base_offset: int,
        /,
        *,
        index_interval_bytes: int,
        max_index_size: int,
        check_crc: bool = True,
        first_offset: Callable[[int], int] | None = None,
        path: str | None = None,
    ) -> None: ...
    def run(self, stop: int, fd: int = -1, /) -> bool: ...
    @property
    def offset_index(self) -> bytes: ...
    @property
    def time_index(self) -> bytes: ...
    @property
    def transactional(self) -> bytes: ...
    @property
    def valid_bytes(self) -> int: ...
    @property
    def truncated_bytes(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def offset_of_max_timestamp(self) -> int: ...
    @property
    def last_offset(self) -> int | None: ...
    @property
    def fault(self) -> _Fault | None: ...
    @property
    def oddities(self) -> list[tuple[str, int, int, int, int]]: ...
    @property
    def epochs(self) -> bytes: ...

def recover(
    buf: Buffer,
    base_offset: int,
    /,
    *,
    index_interval_bytes: int,
    max_index_size: int,
    check_crc: bool = True,
    first_offset: Callable[[int], int] | None = None,
    path: str | None = None,
) -> Recovered: ...
