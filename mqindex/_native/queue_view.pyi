from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import Mapping

@final
class QueueView:
    def __new__(
        cls,
        file: Mapping,
        first: int,
        places: int,
        tail: Mapping,
        tail_first: int,
        low: int,
        high: int,
        parts: npt.NDArray[np.int64],
        first_path: bytes,
        look_again: float,
        /,
    ) -> QueueView: ...
    def forget(self) -> None: ...

@final
class QueueViews:
    def __new__(
        cls, result: type[tuple[Any, ...]], found: object, columns: Callable[[Any, int], object]
    ) -> QueueViews: ...
    def remember(
        self,
        log: object,
        name: tuple[str, int],
        view: QueueView,
        tags: str | None,
        hashes: npt.NDArray[np.int32] | None,
        /,
    ) -> None: ...
    def close(self) -> None: ...
    def answer(
        self,
        log: object,
        topic: object,
        queue_id: object,
        offset: object,
        max_msg_nums: object,
        tags: object,
        columns: object,
        /,
    ) -> Any: ...
