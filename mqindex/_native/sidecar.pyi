from collections.abc import Callable
from typing import Self, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from mqindex._native.file_watch import FileWatch
from mqindex._native.index_entries import ChainHeads, IndexEntries
from mqindex._native.key_filter import AskedHashes, KeyFilter

@final
class ColdSearch(ChainHeads):
    def __new__(
        cls,
        fence: Buffer,
        keys: KeyFilter | None,
        *,
        file: int,
        covered: int,
        header: bytes,
        watch: FileWatch | None = None,
        fits: Callable[[], bool] | None = None,
        in_memory: Callable[[], bool] | None = None,
        fetch: Callable[[npt.NDArray[np.uint32]], None] | None = None,
    ) -> Self: ...
    def heads(self, core: IndexEntries, asked: AskedHashes) -> npt.NDArray[np.int32] | None: ...
    def wrong_page(self, core: IndexEntries) -> int | None: ...

def build_fence(core: IndexEntries, covered: int) -> Buffer: ...
