from collections.abc import Callable
from typing import Self, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from mqindex._native.index_entries import ChainHeads, IndexEntries

@final
class ColdSearch(ChainHeads):
    def __new__(
        cls,
        fence: Buffer,
        filter: Buffer | None,
        *,
        covered: int,
        checksum: int,
        partitions: int,
        hash_slot_num: int,
        header: bytes,
        fd: int = -1,
        fits: Callable[[], bool] | None = None,
        in_memory: Callable[[], bool] | None = None,
        fetch: Callable[[npt.NDArray[np.uint32]], None] | None = None,
    ) -> Self: ...
    def will_search(self, n: int) -> None: ...
    def heads(self, core: IndexEntries, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32] | None: ...
    def wrong_page(self, core: IndexEntries) -> int | None: ...
    def damaged_partition(self) -> int | None: ...
    def missing_entry(self, core: IndexEntries) -> int | None: ...

def build_fence(core: IndexEntries, covered: int) -> Buffer: ...
def filter_cuts(core: IndexEntries, covered: int) -> list[tuple[int, int]]: ...
def build_fingerprints(core: IndexEntries, first: int, stop: int) -> tuple[Buffer, int, int, int]: ...
