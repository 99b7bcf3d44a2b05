"""The offset and time index of one segment: byte for byte what recovery writes, or held against the log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_recovery import Recovered
from mqindex._words import plural
from mqindex.files import disk
from mqindex.files.regular import regular
from mqindex.kafka.checks.index_check import Against, check_entries, check_shape
from mqindex.kafka.index.index_entries import Entries, read_entries
from mqindex.kafka.layout import MAX_LOG_SIZE, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.partition.partition_files import SegmentFiles
from mqindex.kafka.partition.survey import index_path, index_paths
from mqindex.report import Finding, Severity

__all__ = ["CheckedIndexes", "check_alone", "check_indexes"]

_LEAST_BATCH: Final = 26
_WHAT: Final = {"index": "offset-index", "timeindex": "time-index"}
_SIZES: Final = {"index": OFFSET_ENTRY_SIZE, "timeindex": TIME_ENTRY_SIZE}


@dataclass(slots=True)
class CheckedIndexes:
    """`wrong`: endings that a repair writes anew; `unlike`: sound ones that a rebuild would write otherwise."""

    findings: list[Finding] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)
    unlike: set[str] = field(default_factory=set)
    open: bool = False
    entries: int = 0

    def judge(self, ending: str, findings: list[Finding]) -> None:
        """Findings of one file."""
        self.findings += findings
        if any(one.severity == "error" or one.kind.endswith(("-empty", "-missing")) for one in findings):
            self.wrong.add(ending)

    @property
    def is_sound(self) -> bool:
        return not any(one.severity == "error" for one in self.findings)

    def soften(self) -> None:
        """Call no error what a broker with another interval may have left, and mends when it closes the segment."""
        self.findings = [replace(one, severity="warning") if one.severity == "error" else one for one in self.findings]


def check_indexes(files: SegmentFiles, segment: LogSegment, made: Recovered, *, may_be_open: bool) -> CheckedIndexes:
    """Check both files of a segment whose log is good for what was recovered of it.

    may_be_open : nobody closed the segment, as far as is known; it is open where one of its files ends in zeros.
    """
    due = {"index": made.offset_index, "timeindex": made.time_index}
    plain, looked = CheckedIndexes(), {}
    for ending, path in list(index_paths(files).items())[:2]:
        wanted = due[ending]
        if path is None:
            plain.judge(ending, [_missing(files, ending, wanted, empty=made.valid_bytes == 0)])
        elif _same(path, wanted):
            plain.entries += len(wanted) // _SIZES[ending]
        elif os.path.getsize(path) > MAX_LOG_SIZE:
            plain.judge(ending, [_endless(path, ending)])
        else:
            looked[ending] = path, read_entries(path, ending, segment.size // _LEAST_BATCH + 1)
    if not looked:
        return plain
    against = Against(
        files.base_offset,
        made.valid_bytes,
        files.base_offset - 1 if made.last_offset is None else made.last_offset,
        made.max_timestamp,
        {ending: len(wanted) // _SIZES[ending] for ending, wanted in due.items()},
        open=may_be_open and any(entries.zeros for _, entries in looked.values()),
    )
    compare = partial(_against_log, segment, looked, _pairs(due["index"]), plain=plain)
    done = compare(against)
    if against.open and done.wrong:  # a repair closes the segment, and then nothing of it is open any more
        done = compare(against.closed())
        if compare(against.of_a_longer_interval()).is_sound:
            done.soften()
    return done


def check_alone(path: str, ending: str) -> CheckedIndexes:
    """Check a file without its log. What a broker's own sanity check refuses is not in order here either."""
    done = CheckedIndexes()
    if os.path.getsize(path) > MAX_LOG_SIZE:
        done.judge(ending, [_endless(path, ending)])
        return done
    entries = read_entries(path, ending, MAX_LOG_SIZE // _LEAST_BATCH + 1)
    done.entries = len(entries)
    done.judge(ending, check_shape(path, ending, entries, may_be_longer=entries.zeros > 0))
    return done


def _against_log(
    segment: LogSegment,
    looked: Mapping[str, tuple[str, Entries]],
    due: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    against: Against,
    plain: CheckedIndexes,
) -> CheckedIndexes:
    """`plain`: what needs no log."""
    done = CheckedIndexes(list(plain.findings), set(plain.wrong), open=against.open, entries=plain.entries)
    for ending, (path, entries) in looked.items():
        done.entries += len(entries)
        done.judge(ending, check_shape(path, ending, entries, may_be_longer=against.open))
    offsets, times = check_entries(
        segment.batch_arrays(0, against.valid_bytes),
        looked.get("index"),
        looked.get("timeindex"),
        due,
        against,
        replaced="index" in done.wrong,
    )
    done.judge("index", offsets)
    done.judge("timeindex", times)
    done.unlike = {ending for ending in looked if ending not in done.wrong}
    return done


def _pairs(index: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Relative offsets and positions."""
    pairs = np.frombuffer(index, ">i4").reshape(-1, 2).astype(np.int64)
    return pairs[:, 0], pairs[:, 1]


def _same(path: str, wanted: bytes) -> bool:
    if os.path.getsize(path) != len(wanted):
        return False
    with disk.named(path), open(path, "rb", buffering=0, opener=regular) as file:
        return file.read(len(wanted) + 1) == wanted


def _missing(files: SegmentFiles, ending: str, wanted: bytes, *, empty: bool) -> Finding:
    """Without a `.index` a broker rebuilds all indexes of the segment; a lost `.timeindex` it makes empty, for good."""
    hint = "a broker makes an empty one, and then answers searches by time wrongly; `mqindex repair` writes it"
    if ending == "timeindex" and not wanted:
        hint = "a broker makes an empty one, as it is due here"
    elif ending == "index":
        hint = "`mqindex repair` writes it; a broker reads the whole segment for it, from 1.1 to 2.2 it does not"
    expected = plural(len(wanted) // _SIZES[ending], "entry")
    severity: Severity = "info" if ending == "timeindex" and not wanted else "warning" if empty else "error"
    path = index_path(files, ending)
    return Finding(severity, f"{_WHAT[ending]}-missing", path, None, None, expected, "no file", hint)


def _endless(path: str, ending: str) -> Finding:
    """Not read: no broker could."""
    hint = "`mqindex repair` writes it from the log"
    expected, got = f"at most {MAX_LOG_SIZE} bytes", os.path.getsize(path)
    return Finding("error", f"{_WHAT[ending]}-length", path, None, None, expected, got, hint)
