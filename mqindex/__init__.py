"""Reads, writes, verifies, rebuilds and bulk-queries the index files of message-queue stores.

The parts are `mqindex.rocketmq`, `mqindex.kafka`, `mqindex.engines`, `mqindex.errors`, `mqindex.report`,
`mqindex.health` and, with the extra `spark`, `mqindex.spark`. Importing this package loads none of them: NumPy and the
kernels come with their first use.
"""

from __future__ import annotations

from mqindex._room import open_room

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than the start of a command
if TYPE_CHECKING:
    from mqindex import engines, errors, health, kafka, report, rocketmq
    from mqindex.columns.columns import Columns
    from mqindex.columns.hits import Hits
    from mqindex.tables import dataset, sql, tables

__all__ = [
    "Columns",
    "Hits",
    "__version__",
    "dataset",
    "engines",
    "errors",
    "health",
    "kafka",
    "kernels",
    "report",
    "rocketmq",
    "sql",
    "tables",
]

__version__ = "0.1.0"

_PARTS = ("engines", "errors", "health", "kafka", "report", "rocketmq", "spark")
_HOME = {
    "Columns": "mqindex.columns.columns",
    "Hits": "mqindex.columns.hits",
    "dataset": "mqindex.tables",
    "sql": "mqindex.tables",
    "tables": "mqindex.tables",
    **{part: f"mqindex.{part}" for part in _PARTS},
}


def kernels() -> dict[str, str]:
    """Which implementation each kernel uses on this processor.

    >>> sorted(kernels())
    ['crc32', 'crc32c', 'hash']
    """
    from mqindex._native import crc, keys

    return {**crc.kernels(), **keys.kernels()}


open_room(__name__, _HOME)
