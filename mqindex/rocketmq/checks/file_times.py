"""The three times of an index file that only its first and last entries decide: begin, end, and the seed's trace.

`begin_timestamp` and `end_timestamp` are exactly the store timestamps of the first and the last entry. The time_diff
of entry 1 counts from the end of the file that was the last when this one was created (rocketmq `IndexFile.putKey`
writes the entry before the header): of the file before it, of an older one if that was deleted meanwhile, or of none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mqindex.files.regular import reading
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.index.compare import Place, time_diffs
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.layout import INDEX_HEADER_FIELDS, INDEX_HEADER_SIZE, IndexHeader
from mqindex.rocketmq.log.log_entries import LogEntries


def wrong_times(index: IndexFile, log: LogEntries) -> list[Finding]:
    """Wrong times in the header, of those whose message is in the log."""
    header = index.header
    times = {
        "begin_timestamp": _stored(log, header.begin_phy_offset),
        "end_timestamp": _stored(log, header.end_phy_offset),
    }
    return [
        _wrong(index, INDEX_HEADER_FIELDS[field], field, expected, getattr(header, field))
        for field, expected in times.items()
        if expected is not None and expected != getattr(header, field)
    ]


def wrong_seed(
    index: IndexFile, log: LogEntries, begin: Place, got: int | None, earlier: Sequence[str]
) -> list[Finding]:
    """A wrong time_diff of the first entry, of which it is `got`; None: it is not there.

    `begin`: where that entry is in the log. It is entry 1, or was so before it was moved.
    """
    seeds = [seed for seed in map(_end_of, earlier) if seed is not None]
    if not seeds or not _adjoins(log, seeds[-1][0], begin):
        return []  # the file that it was seeded by may be gone
    stored = np.array([index.header.begin_timestamp])
    possible = {0} | {int(time_diffs(stored, timestamp)[0]) for _, timestamp in seeds}
    if got is None or got in possible:
        return []
    expected = int(time_diffs(stored, seeds[-1][1])[0])
    return [_wrong(index, None, "time_diff of entry 1", expected, got)]


def _adjoins(log: LogEntries, end_phy_offset: int, begin: Place) -> bool:
    """Whether the entries after the message at `end_phy_offset` begin at `begin`."""
    if end_phy_offset == begin.phy_offset:
        return True
    last = len(log.of(end_phy_offset))
    following = log.first(end_phy_offset, last + 1, begin.phy_offset + 1) if last else ()
    return len(following) > last and int(following[last]["phy_offset"]) == begin.phy_offset and begin.ordinal == 0


def _stored(log: LogEntries, phy_offset: int) -> int | None:
    message = log.of(phy_offset)
    return int(message["store_timestamp"][0]) if len(message) else None


def _end_of(path: str) -> tuple[int, int] | None:
    try:
        with reading(path) as file:
            head = file.read(INDEX_HEADER_SIZE)
    except FileNotFoundError:  # a broker deleted it meanwhile
        return None
    if len(head) < INDEX_HEADER_SIZE:
        return None
    header = IndexHeader.from_bytes(head)
    return header.end_phy_offset, header.end_timestamp


def _wrong(index: IndexFile, at: int | None, field: str, expected: int, got: int) -> Finding:
    return catalogue.WRONG_TIME.finding(index.path, at, field, expected, got)
