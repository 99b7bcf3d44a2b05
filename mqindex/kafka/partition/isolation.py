"""Which batches of a partition a consumer with an isolation level gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy.typing as npt

from mqindex.kafka.log.batches import is_control
from mqindex.kafka.partition.partition_log import IsolationLevel, PartitionLog

_Rows: TypeAlias = npt.NDArray[Any]


@contextmanager
def visible_to(level: IsolationLevel | None, directory: str) -> Iterator[Callable[[_Rows], _Rows]]:
    """A function that keeps, of neighbouring batches, those that such a consumer gets; level None: all.

    "read_uncommitted": without control batches. "read_committed": also without those of aborted transactions, and up to
    the last stable offset of the partition in `directory`.
    """
    if level is None:
        yield lambda rows: rows
    elif level == "read_uncommitted":
        yield lambda rows: rows[~is_control(rows)]
    else:
        with PartitionLog._of(directory) as log:
            yield lambda rows: rows[log._are_committed(rows)]
