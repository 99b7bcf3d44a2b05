import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from mqindex._native.index_entries import IndexEntries
from mqindex.columns.numbers import Time

@disjoint_base
class SingleCalls:
    def _bind_core(self, core: IndexEntries, sparse: bool, elsewhere: bool) -> None: ...
    def put_key(self, key: str, phy_offset: int, store_timestamp: Time) -> bool: ...
    def select_phy_offset(
        self, key: str, *, max_num: int = 64, begin: Time = 0, end: Time = 9223372036854775807
    ) -> npt.NDArray[np.int64]: ...
    def _select_between(self, key: str, max_num: int, begin: int, end: int) -> npt.NDArray[np.int64]: ...
