from collections.abc import Callable
from typing import TypeAlias, final

from typing_extensions import Buffer

_Fault: TypeAlias = tuple[str, int, str, str, str]

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
        stretch: int = 0,
        past_damage: bool = False,
    ) -> None: ...
    def run(self, stop: int, fd: int = -1, there: int | None = None, /) -> bool: ...
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
    def end_bytes(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def damage(self) -> list[tuple[_Fault, int, int, int, int, int, bool]]: ...
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
    def end_fault(self) -> _Fault | None: ...
    @property
    def oddities(self) -> list[tuple[str, int, int, int, int]]: ...
    @property
    def epochs(self) -> bytes: ...
    @property
    def tally(self) -> tuple[bytes, bytes, bytes] | None: ...

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
    stretch: int = 0,
    past_damage: bool = False,
) -> Recovered: ...
