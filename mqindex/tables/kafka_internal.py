"""The tables of what Kafka's brokers write for themselves: commits, transactions, metadata, markers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from mqindex.columns.columns import Columns
from mqindex.files.paths import absolute, parent_of
from mqindex.kafka.directories.log_dir import named_partition
from mqindex.kafka.internal.decoders import DECODERS
from mqindex.kafka.internal.markers import decode_markers
from mqindex.tables.bounds import Bounds, Interval
from mqindex.tables.kafka import records, tables_of_files
from mqindex.tables.table import Opened, Options, Table, cheapest_first

_TABLES: Final = {
    "commits": "__consumer_offsets",
    "transaction_states": "__transaction_state",
    "metadata": "__cluster_metadata",
}
"""By their names the topics that they are decoded from."""
_PASSED: Final = {"record_partition": "partition", "record_offset": "offset", "record_timestamp": "timestamp"}
_READ: Final = ("topic", *_PASSED.values(), "key", "value", "is_control")
_CONTROL: Final = ("log-dir", "partition", "segment")


def tables_of(path: str, kind: str | None) -> Mapping[str, Opened] | None:
    """The tables of a path of Kafka's; None: it has none. Those of a topic only where it may be."""
    if kind not in _CONTROL:
        return tables_of_files(kind)
    home = parent_of(absolute(path)) if kind == "segment" else path
    topic = None if kind == "log-dir" else named_partition(home).topic
    found = {name: _decoding(DECODERS[of], of) for name, of in _TABLES.items() if topic in (None, of)}
    return {**(tables_of_files(kind) or {}), "markers": _markers, **found}


def _decoding(decode: Callable[[Columns], Columns], topic: str) -> Opened:
    def opened(path: str, kind: str, options: Options) -> Table:
        return _table(decode, {"topic": Interval(topic, topic, frozenset({topic}))}, path, kind, options)

    return opened


def _markers(path: str, kind: str, options: Options) -> Table:
    """What control records say."""
    return _table(_decoded_markers, {}, path, kind, options)


def _decoded_markers(found: Columns) -> Columns:
    chosen = found.take(found["is_control"])
    return Columns({"record_topic": chosen["topic"], **decode_markers(chosen)}, len(chosen))


def _table(decode: Callable[[Columns], Columns], of: Bounds, path: str, kind: str, options: Options) -> Table:
    table = records(path, kind, options)
    empty = cheapest_first(decode(table.empty.select(_READ)), "record_offset")
    return Table(empty, partial(_rows, table, decode, of))


def _rows(
    table: Table, decode: Callable[[Columns], Columns], of: Bounds, columns: Sequence[str], bounds: Bounds
) -> Iterator[Columns]:
    passed = {name: bounds[record] for record, name in _PASSED.items() if record in bounds}
    for found in table.read(_READ, {**passed, **of}):
        yield decode(found.select(_READ))
