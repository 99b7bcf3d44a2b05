"""Where a log ends, and what follows its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mqindex._native.commit_log import find_frame
from mqindex._native.log_extract import Extractor
from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.files.mapped_file import MappedFile
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.log.log_entries import Damage, LogSpan, drained
from mqindex.rocketmq.pipeline.splits import Stretch, cut, extract
from mqindex.rocketmq.pipeline.survey import Survey

__all__ = ["find_behind", "fix_log_end"]

_BLOCK = 1 << 24


def fix_log_end(engine: Engine, found: Survey, split_size: int) -> tuple[Survey, list[Finding]]:
    """Fix where the log ends: after the last good frame of its last file. From here on nothing lies after that."""
    if not found.spans:
        return found, []
    last = found.spans[-1]
    splits = cut([last], Stretch(last.file_start, last.stop), split_size, tags=found.tags, out=None)
    (extracted,) = extract(engine, [splits], name="find the log's end")
    if extracted.fault is None:
        return found, []
    findings = find_behind(engine, found.spans, extracted.fault)
    spans = (*found.spans[:-1], replace(last, stop=extracted.fault.at))
    return replace(found, spans=spans), findings


def find_behind(engine: Engine, spans: Sequence[LogSpan], fault: Damage | None) -> list[Finding]:
    """Findings after the bad frame that ends the log: stale bytes, or whole frames that are never indexed."""
    if fault is None:
        return []
    return engine.map(_behind, [(spans[-1], fault.at)], name="read behind the log's end")[0]


def _behind(item: tuple[LogSpan, int]) -> list[Finding]:
    span, end = item
    with MappedFile.open(span.path) as log:
        frames = _whole_frames(log, span, end)
        stale = frames > 0 or _any_byte(log, end - span.file_start, span.stop - span.file_start)
    if frames:
        got = f"{plural(frames, 'complete frame')} after it"
        return [catalogue.FRAMES_AFTER_LOG_END.finding(span.path, end - span.file_start, got=got)]
    return [catalogue.STALE_BYTES_AFTER_LOG_END.finding(span.path, end - span.file_start)] if stale else []


def _whole_frames(log: MappedFile, span: LogSpan, at: int) -> int:
    frames = 0
    while at + 1 < span.stop and (at := find_frame(log.map, span.file_start, at + 1, span.stop)) >= 0:
        walk = drained(Extractor(log.map, span.file_start, at, span.stop))
        frames += walk.messages
        at = max(walk.end, at)
    return frames


def _any_byte(log: MappedFile, start: int, stop: int) -> bool:
    data = np.frombuffer(memoryview(log.map), np.uint8)[start:stop]
    return any(data[at : at + _BLOCK].any() for at in range(0, len(data), _BLOCK))
