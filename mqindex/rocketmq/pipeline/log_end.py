"""Where a log ends, and what follows its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mqindex.engines import Engine
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.expiry import read_again
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.log.log_files import list_log_files
from mqindex.rocketmq.log.log_scan import end_of_file, frames_behind
from mqindex.rocketmq.pipeline.splits import LogRange, cut, damage_finding, extract
from mqindex.rocketmq.pipeline.survey import Survey

_BLOCK = 1 << 24


def fix_log_end(engine: Engine, found: Survey, split_size: int) -> tuple[Survey, list[Finding]]:
    """Fix where the log ends: after the last good frame of its last file. From then on nothing counts after it."""
    if not found.spans:
        return found, []
    last = found.spans[-1]
    splits = cut([last], LogRange(last.file_start, last.stop), split_size, tags=found.tags, out=None)
    (extracted,) = extract(engine, [splits], name="find the log's end")
    if extracted.fault is None:
        return found, []
    after_end = find_after_end(engine, found.spans, extracted.fault)
    spans = (*found.spans[:-1], replace(last, stop=extracted.fault))
    return replace(found, spans=spans), list(after_end.findings)


def log_now(directories: Sequence[str], spans: Sequence[LogSpan]) -> tuple[tuple[LogSpan, ...], int]:
    """A log whose end was fixed before, and that somebody may be writing: its spans now, and where its frames end.

    The last span extends to the end of its file, so that what is written from now on can be read too: a walk ends at
    the first bad frame there anyway. Nothing is added where the record at the fixed end is still a bad one.
    """
    return read_again(lambda: _log_now(directories, spans))


def frames_end_now(found: Survey) -> int:
    """A task: where the frames of a log whose end was fixed before end now."""
    return log_now(found.options.commitlog, found.spans)[1]


def _log_now(directories: Sequence[str], spans: Sequence[LogSpan]) -> tuple[tuple[LogSpan, ...], int]:
    if not spans:
        return (), 0
    now, end = list(spans[:-1]), spans[-1].stop
    for file in list_log_files(directories):
        if file.start < spans[-1].file_start:
            continue
        if file.start > end:  # the log does not reach so far yet
            break
        now = [*(replace(span, last=False) for span in now), LogSpan(file.path, file.start, file.stop, last=True)]
        if end < file.stop:
            end = end_of_file(file, end)
    return tuple(now), end


class AfterEnd(NamedTuple):
    """What is after the bad frame that ends a log. `behind`: the damage, if whole frames are."""

    findings: tuple[Finding, ...] = ()
    behind: Damage | None = None


def find_after_end(engine: Engine, spans: Sequence[LogSpan], fault: int | None) -> AfterEnd:
    """Whole frames, else a finding of stale bytes, if there are any."""
    if fault is None:
        return AfterEnd()
    return engine.map(_after_end, [(spans[-1], fault)], name="read after the log's end")[0]


def _after_end(item: tuple[LogSpan, int]) -> AfterEnd:
    span, end = item
    with span.open() as log:
        behind = frames_behind(log, span.path, span.file_start, end, span.stop)
        stale = behind is None and _any_byte(log, end - span.file_start, span.stop - span.file_start)
    if behind is not None:
        return AfterEnd((damage_finding(behind),), behind)
    return AfterEnd((catalogue.STALE_BYTES_AFTER_LOG_END.finding(span.path, end - span.file_start),) if stale else ())


def _any_byte(log: MappedFile, start: int, stop: int) -> bool:
    for at in range(start, stop, _BLOCK):
        end = min(at + _BLOCK, stop)
        if np.frombuffer(memoryview(log.window(at, end))[at:end], np.uint8).any():
            return True
        log.release(at)
    return False
