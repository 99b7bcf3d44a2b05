"""One index file against itself and against the log: the stage that verify and repair share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mqindex._words import plural
from mqindex.errors import MQIndexError, was_cut
from mqindex.files import disk
from mqindex.files.places.place import require_answer
from mqindex.files.reading.regular import reading
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, layout
from mqindex.rocketmq.index.compare import Comparison, Difference, Place, are_expired, next_entry, time_diffs
from mqindex.rocketmq.index.compare_moved import comparisons, entries_absent, entries_of, first_time_diff
from mqindex.rocketmq.index.geometry import file_size
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.layout import INDEX_HEADER_FIELDS, INDEX_HEADER_SIZE, IndexHeader
from mqindex.rocketmq.log.expiry import present
from mqindex.rocketmq.log.log_entries import LogEntries, LogSpan, Tags
from mqindex.rocketmq.pipeline.log_end import log_now
from mqindex.rocketmq.pipeline.splits import damage_finding
from mqindex.rocketmq.tally.index_shape import IndexShape, index_shape

_ENDS = 100  # entries compared at both ends of a file
_LOOKS = 5  # repeats for a log that grows while it is compared


@dataclass(frozen=True, slots=True)
class FileCheck:
    """One index file to check. `earlier`: the files before it, by name. `measure`: its shape too.

    `log_end`: where the log's frames ended when that was fixed; `commitlog`: the directories where it may continue.
    """

    path: str
    geometry: tuple[int, int]
    spans: tuple[LogSpan, ...]
    log_end: int
    commitlog: tuple[str, ...]
    tags: Tags
    deep: bool
    earlier: tuple[str, ...] = ()
    measure: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The result for one file: `good` files stay, and cover the entries from `begin` to `end` (None: none in the log).

    `places`: other pairs of them that agree with the log as well, as the file is inside one message with a key twice.
    `first`: the number of the first entry that the log still has. `room`: how many more entries it takes. `moved`: its
    entries are in the order of their slots, as `optimize` writes them. `beyond`: the least phy offset of an entry after
    the log's end; None: none has.
    """

    path: str
    good: bool
    findings: tuple[Finding, ...]
    entries: int = 0
    first: int = 1
    room: int = 0
    begin: Place | None = None
    end: Place | None = None
    places: tuple[tuple[Place, Place], ...] = ()
    end_phy_offset: int = 0
    end_timestamp: int = 0
    gone: bool = False
    shape: IndexShape | None = None
    moved: bool = False
    beyond: int | None = None


def check_file(check: FileCheck) -> Checked:
    """Structure first, then both ends against the log; with `deep`, and where files of it are missing, every entry.

    If a broker deletes the log's oldest files meanwhile, the remaining files are the log; `gone`: it deleted the index
    file. If it writes more, an index file that continues after the log's end is compared with the log as it is by then.
    """
    while True:
        try:
            return _check_growing(check)
        except FileNotFoundError:
            if not disk.exists(check.path):
                return Checked(check.path, False, (), gone=True)
            left = present(check.spans)
            if len(left) == len(check.spans):
                raise
            check = replace(check, spans=left)


def _check_growing(check: FileCheck) -> Checked:
    checked, known = _check_file(check), check.log_end
    for _ in range(_LOOKS):
        if checked.good:
            break
        spans, end = log_now(check.commitlog, check.spans)
        if end <= known:
            break
        checked, known = _check_file(replace(check, spans=spans, log_end=end)), end
    return checked


def _check_file(check: FileCheck) -> Checked:
    size, wanted = file_size(check.path), layout.index_file_size(*check.geometry)
    if size != wanted:
        return _bad(check, catalogue.INDEX_SIZE.finding(check.path, expected=wanted, got=size))
    try:
        with (
            IndexFile._open_known(check.path, check.geometry) as index,
            LogEntries(check.spans, tags=check.tags) as log,
        ):
            faults = [structural_finding(check.path, fault) for fault in index._check()]
            if any(fault.severity == "error" for fault in faults):
                return _bad(check, *faults)
            checked = _against_log(check, index, log, faults)
            return replace(checked, shape=index_shape(index)) if check.measure else checked
    except MQIndexError as error:
        if was_cut(error) and error.path != check.path:
            raise  # of the log: it says nothing about the index file
        require_answer(error, error.path)
        return _bad(check, catalogue.INDEX_UNREADABLE.finding(check.path, error=error))


def _bad(check: FileCheck, *findings: Finding) -> Checked:
    return Checked(check.path, False, findings)


def structural_finding(path: str, fault: tuple[str, int, int, object, object]) -> Finding:
    """A contradiction inside an index file, as `IndexFile.check` gives it."""
    kind, number, at, expected, got = fault
    return catalogue.INDEX_FAULTS[kind].finding(path, at, _fault_field(kind, number), expected, got)


def _fault_field(kind: str, number: int) -> str:
    """Where the contradiction is: in a field of the header, which the kind is named by, in a slot or in an entry.

    >>> _fault_field("index_count", -1), _fault_field("slot_head", 0), _fault_field("prev_index", 7)
    ('index_count', 'slot 0', 'entry 7')
    """
    if number < 0:
        return kind
    return f"slot {number}" if kind.startswith("slot") else f"entry {number}"


def _against_log(check: FileCheck, index: IndexFile, log: LogEntries, findings: list[Finding]) -> Checked:
    header = index.header
    checked = Checked(
        check.path,
        True,
        tuple(findings),
        entries=next_entry(index) - 1,
        room=index.index_num - next_entry(index),
        end_phy_offset=header.end_phy_offset,
        end_timestamp=header.end_timestamp,
    )
    if not checked.entries and _begin(header) != _end(header):  # a broker seeds both with the end of the file before
        seeds = f"seeds {_end(header)}", f"{_begin(header)}"
        return _bad(check, *findings, catalogue.INDEX_EMPTY.finding(check.path, 0, "begin", *seeds))
    absent = entries_absent(index, log)
    if absent:
        findings += _expired(index, log, absent)
        checked = replace(checked, first=absent + 1)
    if absent == next_entry(index) - 1:
        return replace(checked, findings=(*findings, *_unreadable(index, log)))
    if header.end_phy_offset >= check.log_end:
        limit, got = f"below {check.log_end}", header.end_phy_offset
        beyond = catalogue.INDEX_BEYOND_LOG.finding(check.path, 24, "end_phy_offset", limit, got)
        phy_offsets = index.entries()["phy_offset"]
        least = phy_offsets[phy_offsets >= check.log_end].min(initial=header.end_phy_offset)
        return replace(_bad(check, *findings, beyond), beyond=int(least))
    left = checked.entries - absent
    every = check.deep or left <= 2 * _ENDS or log.has_hole(header.begin_phy_offset, header.end_phy_offset)
    compared, moved = comparisons(index, log, _ENDS, every=every)
    begin, end = compared[0].begin, compared[-1].end
    wrong = [_differing(check.path, each) for one in compared for each in one.differences]
    if moved and not wrong:
        wrong = _wrong_ends(check.path, header, log, None if absent else begin, end)
    wrong = wrong or wrong_times(index, log)
    if not wrong and not absent:
        first_diff = first_time_diff(index, log, begin) if moved else int(index.entries(1, 2)["time_diff"][0])
        wrong = wrong_seed(index, log, begin, first_diff, check.earlier)
    damage = [damage_finding(one) for one in log.damage.values()]
    findings += [*wrong, *damage, *_unreadable(index, log), *_repeated(check, compared)]
    return replace(
        checked, good=not wrong, findings=tuple(findings), begin=begin, end=end, places=compared[0].places, moved=moved
    )


def _begin(header: IndexHeader) -> tuple[int, int]:
    return header.begin_phy_offset, header.begin_timestamp


def _end(header: IndexHeader) -> tuple[int, int]:
    return header.end_phy_offset, header.end_timestamp


def _wrong_ends(path: str, header: IndexHeader, log: LogEntries, begin: Place | None, end: Place) -> list[Finding]:
    """In a file with moved entries any two may be the header's: the file by itself does not show which.

    `begin`: None if the file's first entry is of a message that is in no file of the log.
    """
    ends = {"begin_phy_offset": begin, "end_phy_offset": end}
    if log.are_unreadable(np.array([header.end_phy_offset])).any():
        del ends["end_phy_offset"]
    return [
        structural_finding(path, (field, -1, INDEX_HEADER_FIELDS[field], place.phy_offset, getattr(header, field)))
        for field, place in ends.items()
        if place is not None and getattr(header, field) != place.phy_offset
    ]


def _expired(index: IndexFile, log: LogEntries, absent: int) -> list[Finding]:
    """`absent` entries are of messages that are in no file of the log, in an unmoved file the first ones."""
    stop = next_entry(index) if index._order().moved else absent + 1
    count = entries_of(index, stop, lambda phy_offsets: are_expired(phy_offsets, log))
    return [catalogue.INDEX_ENTRIES_EXPIRED.finding(index.path, got=count)] if count else []


def _unreadable(index: IndexFile, log: LogEntries) -> list[Finding]:
    header = index.header
    if not log.damage and not log.has_hole(header.begin_phy_offset, header.end_phy_offset):
        return []
    count = entries_of(index, next_entry(index), log.are_unreadable)
    return [catalogue.INDEX_ENTRIES_OF_DAMAGED_LOG.finding(index.path, got=count)] if count else []


def _repeated(check: FileCheck, compared: Sequence[Comparison]) -> list[Finding]:
    repeated = max(one.repeated for one in compared)
    return [catalogue.MESSAGE_INDEXED_TWICE.finding(check.path, got=repeated)] if repeated else []


def _differing(path: str, difference: Difference) -> Finding:
    place = (
        f"entry {difference.number}" if difference.field is None else f"{difference.field} of entry {difference.number}"
    )
    if difference.kind == "missing":
        kind, got = catalogue.MISSING_IN_FILE, "none"
        expected = f"{plural(difference.count, 'entry')} from phy offset {difference.phy_offset} on"
    elif difference.kind == "foreign":
        kind, expected, got = catalogue.FOREIGN_ENTRY, "an entry of this log", f"phy offset {difference.phy_offset}"
    else:
        kind, expected, got = catalogue.WRONG_ENTRY, str(difference.expected), str(difference.got)
    return kind.finding(path, None, place, expected, got)


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
