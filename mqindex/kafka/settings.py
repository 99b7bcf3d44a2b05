"""The settings of a Kafka topic that shape its index files: each is one row, which options, checks and the shell ask.

No file of a partition has them; the metadata log has what was set for a topic.
Source: Kafka 4.4.0 `TopicConfig`, `LogConfig`.
"""

from __future__ import annotations

from typing import Any, Final

from mqindex._settings import Setting
from mqindex.columns.limits import whole_number_from

_LEAST = 12  # bytes: one entry of a time index


def number(name: str, value: Any, least: int) -> int:
    """A number that a broker's int can be."""
    return whole_number_from(least, name, value)


INDEX_INTERVAL: Final = Setting(
    "index.interval.bytes", number, 4096, "bytes", "how much of the log is between two entries", 0,
    argument="index_interval_bytes", shown="as the metadata log or intact .index files show it",
)  # fmt: skip
INDEX_SIZE: Final = Setting(
    "segment.index.bytes", number, 10_485_760, "bytes", "how long an index may get", _LEAST,
    argument="max_index_size",
)  # fmt: skip

SETTINGS: Final[dict[str, Setting[int]]] = {one.name: one for one in (INDEX_INTERVAL, INDEX_SIZE)}
"""Both of them, by name."""
