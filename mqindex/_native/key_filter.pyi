from collections.abc import Sequence
from typing import Self, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from mqindex._native.file_watch import FileWatch
from mqindex._native.index_entries import IndexEntries

@final
class KeyFilter:
    def __new__(
        cls,
        data: Buffer,
        *,
        files: int,
        hash_slot_num: int,
        index_num: int,
        seed: int,
        watch: FileWatch | None = None,
    ) -> Self: ...
    def damaged_row(self) -> int | None: ...
    def missing_entry(self, file: int, core: IndexEntries, covered: int) -> int | None: ...

@final
class AskedHashes:
    hashes: npt.NDArray[np.int32]
    def __new__(cls, hashes: npt.NDArray[np.int32], *, alone: bool = False) -> Self: ...

def filter_shape(hash_slot_num: int, index_num: int) -> tuple[int, int]: ...
def build_rows(
    core: IndexEntries, covered: int, shift: int, first: int, stop: int, seed: int
) -> tuple[Buffer, memoryview, int]: ...
def weave_rows(
    columns: Sequence[tuple[KeyFilter, int]], first: int, stop: int, seed: int
) -> tuple[Buffer, memoryview]: ...
