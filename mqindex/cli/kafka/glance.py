"""What lengths and ends show of a partition or a log dir; it proves nothing: `verify` reads everything."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mqindex._words import plural
from mqindex.errors import MQIndexError
from mqindex.health import a_day

if TYPE_CHECKING:
    from mqindex.kafka.partition.partition_files import PartitionFiles, SegmentFiles

__all__ = ["glance_of_log_dir", "glance_of_partition", "missing_files"]

Facts = dict[str, Any]
_INDEXES = {"index": ("offset index", "offset indexes"), "timeindex": ("time index", "time indexes")}


def missing_files(segments: Iterable[Facts], files: PartitionFiles) -> Counter[str]:
    """By the name of an index: how many segments have none, and after `bytes of ` how long their logs are.

    `log`: how many have no log, but an index, or something else of that name; `file`: how many other names of its files
    a directory has, or something else; `name`: how many logs have an offset in their name, but not as 20 digits.
    """
    from mqindex.kafka.partition.partition_files import other_names

    no_logs = [path for path in files.not_files if path.endswith(".log")]
    logless = {os.path.basename(path).partition(".")[0] for path in (*files.orphans, *no_logs)}
    others = [path for path in files.not_files if path.rpartition(".")[2] not in ("log", *_INDEXES)]
    missing: Counter[str] = Counter(log=len(logless), file=len(others))
    missing["name"] = sum(found.ending == "log" for found in other_names(files))
    for row in segments:
        for name in _INDEXES:
            if row.get(name) is None:
                missing.update({name: 1, f"bytes of {name}": row["size"]})
    return missing


def glance_of_log_dir(facts: Facts, missing: Counter[str]) -> Facts:
    """Signs of trouble in any partition. Growth is left out: it would need every partition's log."""
    segments = sum(row["segments"] for row in facts["partitions"])
    worries = list(_prevented(facts))
    if not facts["clean_shutdown"] and facts["lock"] == "free":
        worries.append("the last exit was unclean")
    return {"worries": [*worries, *_worries(missing, segments)], "missing": _plain(missing)}


def _prevented(facts: Facts) -> Iterator[str]:
    """What the names of its directories show of a broker's start."""
    strays, duplicates = facts["strays"], facts["duplicates"]
    if strays:
        are = "is not a partition" if len(strays) == 1 else f"and {len(strays) - 1} more are not partitions"
        yield f"no broker starts: {strays[0]} {are}"
    if duplicates:
        yield f"no broker starts: {duplicates[0][1]} and {duplicates[0][0]} are of the same partition"


def glance_of_partition(facts: Facts, files: PartitionFiles) -> Facts:
    """Signs of trouble in a partition, and how fast it grows."""
    rows = facts["segments"]
    missing = missing_files(rows, files)
    return {
        "worries": list(_worries(missing, len(rows))),
        "missing": _plain(missing),
        "rates": _rates(facts, files.segments),
    }


def _plain(missing: Counter[str]) -> Facts:
    return {name: {"segments": missing[name], "bytes": missing[f"bytes of {name}"]} for name in _INDEXES}


def _worries(missing: Counter[str], segments: int) -> Iterator[str]:
    if number := missing["log"]:
        yield f"{plural(number, 'more segment')} {'have' if number > 1 else 'has'} no log"
    for name, words in _INDEXES.items():
        if number := missing[name]:
            gone = "are missing" if number > 1 else "is missing"
            yield f"{number} {words[number > 1]} of {plural(segments, 'segment')} {gone}"
    if number := missing["name"]:
        yield f"{plural(number, 'log')} {'have' if number > 1 else 'has'} a name that no broker reads"
    if number := missing["file"]:
        yield f"{plural(number, 'other name')} {'lead' if number > 1 else 'leads'} to no file"


def _rates(facts: Facts, segments: Sequence[SegmentFiles]) -> Facts | None:
    """Bytes and records a day, between the first time in the first segment and the greatest of the last one."""
    first, last = _first_time(segments), _last_time(segments)
    size = a_day(facts["size"], first, last)
    if size is None:
        return None
    begin, end = segments[0].base_offset, facts["next_offset"]
    return {
        "first_timestamp": first,
        "last_timestamp": last,
        "bytes_a_day": size,
        "records_a_day": None if end is None else a_day(end - begin, first, last),
    }


def _first_time(segments: Sequence[SegmentFiles]) -> int | None:
    from mqindex.kafka import LogSegment

    for each in segments[:1]:
        with contextlib.suppress(MQIndexError), LogSegment.open(each.log, base_offset=each.base_offset) as segment:
            rows = next(segment.batch_arrays(check_crc=False), None)
            return None if rows is None or not len(rows) else int(rows["max_timestamp"][0])
    return None


def _last_time(segments: Sequence[SegmentFiles]) -> int | None:
    from mqindex.kafka import LogSegment
    from mqindex.kafka.log.active_segment import greatest_timestamp

    for each in [one for one in segments if os.path.getsize(one.log)][-1:]:
        with contextlib.suppress(MQIndexError), LogSegment.open(each.log, base_offset=each.base_offset) as segment:
            return greatest_timestamp(segment) if segment.time_index is not None else None
    return None
