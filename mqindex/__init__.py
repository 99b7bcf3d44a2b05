"""Reads, writes, verifies, rebuilds and bulk-queries the index files of message-queue stores.

The parts are `mqindex.rocketmq`, `mqindex.kafka`, `mqindex.engines`, `mqindex.errors`, `mqindex.report`,
`mqindex.health` and, with the extra `spark`, `mqindex.spark`. Importing this package loads none of them: NumPy and the
kernels come with their first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than the start of a command
if TYPE_CHECKING:
    from typing import Any

    from mqindex import engines, errors, health, kafka, report, rocketmq
    from mqindex.columns.columns import Columns
    from mqindex.columns.hits import Hits

__all__ = ["Columns", "Hits", "__version__", "engines", "errors", "health", "kafka", "kernels", "report", "rocketmq"]

__version__ = "0.1.0"

_HOME = {"Columns": "mqindex.columns.columns", "Hits": "mqindex.columns.hits"}
_PARTS = ("engines", "errors", "health", "kafka", "report", "rocketmq", "spark")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        import importlib

        return importlib.import_module(f"mqindex.{name}")
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'mqindex' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS, *_HOME})


def kernels() -> dict[str, str]:
    """Which implementation each kernel uses on this processor.

    >>> sorted(kernels())
    ['crc32', 'crc32c', 'hash']
    """
    from mqindex._native import crc, keys

    return {**crc.kernels(), **keys.kernels()}
