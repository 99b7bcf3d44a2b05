"""What headers and ends show of a whole store: would a broker start, what do index and queues cover, how it grows.

Nothing is read that grows with the store, so it proves nothing: `verify` reads everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mqindex.errors import MQIndexError, reason
from mqindex.files.paths import absolute, join
from mqindex.files.places.place import require_answer
from mqindex.health import a_day
from mqindex.wording.verdict import verdict

if TYPE_CHECKING:
    from mqindex.rocketmq import CommitLog
    from mqindex.rocketmq.options import StoreArguments

Facts = dict[str, Any]


def glance(path: str, facts: Facts, options: StoreArguments) -> Facts:
    """A few numbers for a whole store, from its facts as `mqindex info` has them; what is not known is None."""
    return {
        "start": _start(path, options),
        "coverage": None,
        "rates": None,
        **_of_log(path, facts, options),
        "lag": _lag((facts.get("consumer_offsets") or {}).get("offsets", ())),
    }


def covered_share(coverage: Facts, name: str) -> float | None:
    """How much of the log is covered, 0 to 1; None: the part that would cover it is missing."""
    begin, end = coverage["log"]
    if coverage[name] is None:
        return None
    return sum(stop - start for start, stop in coverage[name]) / (end - begin) if end > begin else 1.0


def _start(path: str, options: StoreArguments) -> Facts:
    """Question and answer, as `verify` gives them."""
    from mqindex.rocketmq.checks.start.start_check import check_start
    from mqindex.rocketmq.options import store_options
    from mqindex.rocketmq.pipeline.survey import survey_in_place

    try:
        start = check_start(survey_in_place(store_options(path, **options))).start
    except (MQIndexError, OSError) as error:
        if isinstance(error, OSError):
            require_answer(error, path)
        return {"starts": None, "words": {"would a broker start": f"not known: {reason(error)}"}}
    return {"starts": start.starts, "words": dict(verdict(start, absolute(path)))}


def _of_log(path: str, facts: Facts, options: StoreArguments) -> Facts:
    from mqindex.rocketmq import CommitLog
    from mqindex.rocketmq.options import store_options

    if not (facts.get("commitlog") or {}).get("files"):
        return {}
    try:
        with CommitLog.open(store_options(path, **options).commitlog) as log:  # files of whatever length, as its facts
            return {"coverage": _coverage(log, facts), "rates": _rates(log, facts)}
    except (MQIndexError, OSError) as error:  # the facts of the log have it
        require_answer(error, path)
        return {}


def _coverage(log: CommitLog, facts: Facts) -> Facts:
    """Phy offsets [from, to) of the log, of the index files by their headers, and of the queues by their last units."""
    begin, end = _extent(facts)
    index = facts.get("index") or {}
    ranges = [
        (file["begin_phy_offset"], file["end_phy_offset"] + _size(log, file["end_phy_offset"]))
        for file in index.get("files", ())
        if file.get("entries")
    ]
    reach = max((row["max_phy_offset"] for row in _queues(facts) if row["units"]), default=None)
    return {
        "log": [begin, end],
        "index": None if "files" not in index else _merged(ranges, begin, end),
        "queues": None if reach is None else _merged([(begin, reach)], begin, end),
    }


def _extent(facts: Facts) -> tuple[int, int]:
    """Begin and end of the log, from its facts: its last file is not read again."""
    return facts["commitlog"]["min_phy_offset"], facts["commitlog"]["max_phy_offset"]


def _merged(ranges: Iterable[tuple[int, int]], begin: int, end: int) -> list[list[int]]:
    merged: list[list[int]] = []
    for start, stop in sorted((max(low, begin), min(high, end)) for low, high in ranges):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(stop, merged[-1][1])
        elif start < stop:
            merged.append([start, stop])
    return merged


def _size(log: CommitLog, phy_offset: int) -> int:
    """The size of a message; 0 where none can be read."""
    try:
        return log.get_message(phy_offset).size
    except (MQIndexError, ValueError) as error:
        require_answer(error, getattr(error, "path", None))
        return 0


def _queues(facts: Facts) -> list[Facts]:
    parts = [facts.get(name) or {} for name in ("consumequeue", "batchconsumequeue")]
    return [row for part in parts for row in part.get("queues", ())]


def _rates(log: CommitLog, facts: Facts) -> Facts | None:
    """Bytes and messages a day, between the times of the first message and of the last one in index or queues."""
    begin, end = _extent(facts)
    first, last = _stored(log, begin), _last_time(log, facts)
    size = a_day(end - begin, first, last)
    if size is None:
        return None
    queues = _queues(facts)
    return {
        "first_timestamp": first,
        "last_timestamp": last,
        "bytes_a_day": size,
        "messages_a_day": a_day(sum(row["units"] for row in queues), first, last) if queues else None,
    }


def _stored(log: CommitLog, phy_offset: int) -> int | None:
    try:
        return log.get_message(phy_offset).store_timestamp
    except MQIndexError as error:
        require_answer(error, error.path)
        return None


def _last_time(log: CommitLog, facts: Facts) -> int | None:
    """The time by the queue that reaches farthest; else by the headers of the index."""
    from mqindex.rocketmq import ConsumeQueue

    rows = [row for row in (facts.get("consumequeue") or {}).get("queues", ()) if row["units"]]
    times = [file["end_timestamp"] for file in (facts.get("index") or {}).get("files", ()) if file.get("entries")]
    if rows:
        row = max(rows, key=lambda row: int(row["max_phy_offset"]))
        where = join(facts["consumequeue"]["path"], row["topic"], str(row["queue_id"]))
        with ConsumeQueue.open(where) as queue:
            unit = queue.units(row["max_offset_in_queue"] - 1, row["max_offset_in_queue"])
        stored = _stored(log, int(unit["phy_offset"][0])) if unit.num_rows else None
        times += [] if stored is None else [stored]
    return max(times, default=None)


def _lag(rows: Iterable[Facts]) -> list[Facts]:
    """Each group's messages not consumed yet, the largest first; `unknown`: its queues that the store does not have."""
    groups: dict[str, Facts] = defaultdict(lambda: {"lag": 0, "queues": 0, "unknown": 0})
    for row in rows:
        group = groups[row["group"]]
        group["queues"] += 1
        group["unknown"] += row["lag"] is None
        group["lag"] += max(row["lag"] or 0, 0)
    return sorted(({"group": name, **lag} for name, lag in groups.items()), key=lambda one: (-one["lag"], one["group"]))
