import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from mqindex._native.index_file import IndexCore

@disjoint_base
class SingleCalls:
    def bind_core(self, core: IndexCore, sparse: bool) -> None: ...
    def put_key(self, key: str, phy_offset: int, store_timestamp: int) -> bool: ...
    def select_phy_offset(
        self, key: str, *, max_num: int = 64, begin: int = 0, end: int = 9223372036854775807
    ) -> npt.NDArray[np.int64]: ...
