from typing import Any, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from mqindex._native.keys import KeyBatch

__pyx_capi__: dict[str, object]  # what other kernels cimport

@disjoint_base
class ChainHeads: ...

@disjoint_base
class IndexEntries:
    def __new__(
        cls, buffer: Any, hash_slot_num: int, index_num: int, writable: bool, path: str | None = None
    ) -> Self: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def use_heads(self, heads: ChainHeads | None) -> None: ...
    def put_keys(
        self,
        batch: KeyBatch,
        phy_offsets: npt.NDArray[np.int64],
        store_timestamps: npt.NDArray[np.int64],
        start: int = 0,
    ) -> int: ...
    def put_run(self, run: Any) -> int: ...
    def store_lent(self, last: bool = False) -> None: ...
    def select_hashes(
        self,
        hashes: npt.NDArray[np.int32],
        limits: int | npt.NDArray[np.int32],
        begin: int,
        end: int,
        heads: npt.NDArray[np.int32] | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def pages_missing(
        self,
        present: npt.NDArray[np.uint8],
        hashes: npt.NDArray[np.int32],
        limits: int | npt.NDArray[np.int32],
        begin: int,
        end: int,
        heads: npt.NDArray[np.int32] | None = None,
    ) -> npt.NDArray[np.uint32]: ...
