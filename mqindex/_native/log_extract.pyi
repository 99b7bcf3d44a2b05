from collections.abc import Iterator, Sequence
from typing import final

from typing_extensions import Buffer

from mqindex._native.commit_log import _Fault

@final
class QueueTable:
    def __new__(
        cls,
        delay_levels: Sequence[int],
        *,
        multi_dispatch: bool = True,
        lmq: bool = True,
        system_topics: int = 0b111,
    ) -> QueueTable: ...
    def __len__(self) -> int: ...
    def allows_multi_dispatch(self, topic: str) -> bool: ...
    def names(self) -> list[tuple[str, int]]: ...

@final
class Extractor:
    def __init__(
        self,
        buf: Buffer,
        file_start: int,
        start: int,
        stop: int,
        /,
        *,
        tags: bool = False,
        check_crc: bool = False,
        queues: QueueTable | None = None,
        reuse: Extractor | None = None,
    ) -> None: ...
    @property
    def units(self) -> memoryview: ...
    def __iter__(self) -> Iterator[memoryview]: ...
    def __next__(self) -> memoryview: ...
    @property
    def end(self) -> int: ...
    @property
    def fault(self) -> _Fault | None: ...
    @property
    def messages(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def last_message(self) -> int: ...
    @property
    def last_entry(self) -> int: ...
    @property
    def blank(self) -> int: ...
