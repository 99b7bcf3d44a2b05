"""The entries, batches and records that `mqindex dump` prints of Kafka's files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mqindex._words import plural
from mqindex.cli.broker import Listing
from mqindex.cli.kafka import kinds
from mqindex.cli.kafka.segments import open_segment
from mqindex.cli.printing.formats import Columns
from mqindex.files.paths import absolute, parent_of
from mqindex.wording.text import deleted_meanwhile

if TYPE_CHECKING:
    import numpy.typing as npt

    from mqindex.columns.columns import StringColumn
    from mqindex.kafka import LogSegment

_BLOCK = 1 << 16


def entry_columns(kind: str, path: str, damage: list[str]) -> Iterator[Columns]:
    """The entries of an index file, before its tail of zeros; the producers of a snapshot."""
    return _ENTRIES[kind](path, damage)


def _entries(name: str, path: str, damage: list[str]) -> Iterator[Columns]:
    import numpy as np

    from mqindex import kafka
    from mqindex.kafka.index.index_entries import places_with_data

    end = 0
    with getattr(kafka, name).open(path) as index:
        for places in [range(0), *places_with_data(path, index.kind)]:  # columns without rows have names, too
            if places.start > end:
                gap = plural(places.start - end, "place")
                damage.append(f"{path}: {gap} of zeros from entry {end} on left out: a hole of the file")
            end = places.stop
            for first in range(places.start, max(end, 1), _BLOCK):
                last = min(first + _BLOCK, end, len(index))
                yield {"number": np.arange(first, last), **index.entries(min(first, last), last)}


def _transactions(path: str, damage: list[str]) -> Iterator[Columns]:
    import numpy as np

    from mqindex.kafka import TransactionIndex
    from mqindex.kafka.index.transaction_index import aborted_columns

    with TransactionIndex.open(path) as index:
        columns = aborted_columns(index.entries())
    yield {"number": np.arange(columns.num_rows), **columns}


def batch_columns(kind: str, path: str, listing: Listing) -> Iterator[Columns]:
    """The batches of a segment, or of all segments of a partition with the base offset of each."""
    import numpy as np

    from mqindex.kafka.log.batches import BATCH
    from mqindex.kafka.log.batches import batch_columns as columns_of

    chosen = _main_columns if listing.for_people else columns_of
    none = chosen(np.empty(0, BATCH))
    return _of_segments(kind, path, listing, lambda _, parts: (chosen(rows) for _, rows in parts if len(rows)), none)


def record_columns(kind: str, path: str, listing: Listing) -> Iterator[Columns]:
    """The records of a segment, or of all segments of a partition with the base offset of each."""
    from mqindex.kafka.log import records

    names = _MAIN_RECORD if listing.for_people else tuple(records.COLUMNS)
    none = records.no_records(names)
    return _of_segments(kind, path, listing, lambda segment, parts: segment._records_of(parts, names), none)


def _of_segments(
    kind: str,
    path: str,
    listing: Listing,
    columns_of: Callable[[LogSegment, Iterator[Any]], Iterable[Columns]],
    none: Columns,
) -> Iterator[Columns]:
    """The columns of what a reader sees; `none`: without rows, where there is nothing."""
    from mqindex.kafka.partition.isolation import visible_to

    nothing = True
    for named, where, home in _homes(kind, path):
        with visible_to(listing.isolation, home, lambda error: listing.damage.append(str(error))) as visible:
            for base_offset, segment in _segments(kind, where, listing.damage):
                parts = ((log, rows[visible(log, rows)]) for log, rows in segment._batch_parts())
                for columns in columns_of(segment, parts):
                    nothing, rows = False, len(next(iter(columns.values())))
                    yield {**_places(named, base_offset, rows), **columns}
                listing.damage.extend(fault.words(segment.path) for fault in segment.damage)
    if nothing:
        names: Named = () if kind == kinds.SEGMENT else ("", 0) if kind == kinds.LOG_DIR else (None,)
        yield {**_places(names, 0, 0), **none}


Named = tuple[Any, ...]
"""(topic, partition) in a log dir, (None,) of a partition, () of a segment."""


def _homes(kind: str, path: str) -> Iterator[tuple[Named, str, str]]:
    """What each row says of where it is, the segment or partition to read, and the partition's directory."""
    from mqindex.kafka.directories.log_dir import list_partitions

    if kind == kinds.LOG_DIR:
        for one in list_partitions(path):
            if one.state is None:
                yield (one.topic, one.partition), one.path, one.path
    elif kind == kinds.PARTITION:
        yield (None,), path, path
    else:
        yield (), path, parent_of(absolute(path))


def _places(named: Named, base_offset: int, rows: int) -> dict[str, Any]:
    import numpy as np

    from mqindex.columns.columns import constant_text

    if not named:
        return {}
    segment = {"segment": np.full(rows, base_offset, np.int64)}
    if len(named) == 1:
        return segment
    return {"topic": constant_text(named[0], rows), "partition": np.full(rows, named[1], np.int32), **segment}


def _segments(kind: str, path: str, damage: list[str]) -> Iterator[tuple[int, LogSegment]]:
    """Each segment, open, one after the other, with its base offset."""
    from mqindex.kafka import LogSegment
    from mqindex.kafka.directories.partition_files import list_segments

    if kind == kinds.SEGMENT:
        with open_segment(path) as segment:
            yield segment.base_offset, segment
        return
    for files in list_segments(path).segments:
        try:
            segment = LogSegment._of_files(files)
        except FileNotFoundError:
            damage.append(deleted_meanwhile(files.log))
            continue
        with segment:
            yield files.base_offset, segment


def _main_columns(rows: npt.NDArray[Any]) -> dict[str, Any]:
    """The columns of a batch that people need most."""
    from mqindex.kafka.log import batches

    names = ("position", "size", "base_offset", "last_offset", "count", "max_timestamp", "magic", "producer_id")
    return {
        **{name: rows[name] for name in names},
        "codec": _texts([_codec_name(number) for number in batches.codec_of(rows).tolist()]),
        "transactional": batches.is_transactional(rows),
        "control": batches.is_control(rows),
    }


_MAIN_RECORD = ("position", "offset", "timestamp", "key", "value", "headers", "is_transactional", "is_control")


def _codec_name(number: int) -> str:
    from mqindex.kafka.log.codecs import CODECS

    return CODECS[number] if number < len(CODECS) else str(number)


def _texts(texts: list[str]) -> StringColumn:
    import numpy as np

    from mqindex.columns.columns import StringColumn

    data = [text.encode() for text in texts]
    return StringColumn(np.frombuffer(b"".join(data), np.uint8), np.cumsum([0, *map(len, data)]))


def _producers(path: str, damage: list[str]) -> Iterator[Columns]:
    from mqindex.kafka.directories.producer_state import read_producers

    producers = read_producers(path)
    yield {
        name: producers[name].astype(producers[name].dtype.newbyteorder("=")) for name in producers.dtype.names or ()
    }


_ENTRIES: Final[dict[str, Callable[[str, list[str]], Iterator[Columns]]]] = {
    kinds.OFFSET_INDEX: partial(_entries, "OffsetIndex"),
    kinds.TIME_INDEX: partial(_entries, "TimeIndex"),
    kinds.TRANSACTION_INDEX: _transactions,
    kinds.SNAPSHOT: _producers,
}
