"""Where a broker cuts its log when it starts: at the first record that is bad to it, among those that it reads again.

Source: RocketMQ `CommitLog.checkMessageAndReturnSize`, `MappedFileQueue.truncateDirtyFiles`, 4.5 to 5.5.0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mqindex._native.commit_log import scan_at
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import layout
from mqindex.rocketmq.checks.log_check import Walked
from mqindex.rocketmq.checks.start.recovery import LARGE_BLANK, NEGATIVE_BLANK, Recovery, reach_of_queues
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.log_entries import FileWalk, LogSpan, Tags, drained
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.settings import CHECK_CRC

_PHY_OFFSET = slice(28, 36)  # of a record


def checks_crc(options: StoreOptions) -> bool:
    """Whether a broker that starts compares bodies with their checksums."""
    return options.value(CHECK_CRC)


def with_cuts(engine: Engine, walked: Walked, recoveries: Sequence[Recovery]) -> tuple[Recovery, ...]:
    """These recoveries, each with its cut, by the damage that a walk found."""
    found = walked.survey
    stops: list[Damage] = []
    if walked.damage:
        look = partial(_stops, found.spans, check_crc=checks_crc(found.options))
        stops = run_one(engine, look, walked.damage, "look where a broker stops")
    cuts = [_with_cut(engine, walked, one, stops) for one in recoveries]
    end = walked.behind
    if end is not None and run_one(engine, partial(_is_cut_off, found), end, "look how far the queues reach"):
        by_crc = end.kind == "bad-crc"
        cuts = [one if one.cut is not None else one._replace(behind=end.behind, by_crc=by_crc) for one in cuts]
    return tuple(dict.fromkeys(cuts))


def _is_cut_off(found: Survey, end: Damage) -> bool:
    """Whether a broker stops at the bad record that is the log's end, and has messages behind it in its queues. Those
    that none of them has were cut off before."""
    stops = _stops(found.spans, [end], check_crc=checks_crc(found.options))
    return bool(stops) and reach_of_queues(found.options, end.at + 1) > end.at


def _with_cut(engine: Engine, walked: Walked, one: Recovery, stops: Sequence[Damage]) -> Recovery:
    first = next((stop for stop in stops if stop.at >= one.begin and stop.kind not in one.passes), None)
    one = one._replace(passes=())
    if one.cut is None and first is not None:
        one = one._replace(cut=first.at, by_crc=first.kind == "bad-crc")
    cut = one.cut
    spans = [span for span in walked.survey.spans if cut is not None and cut < span.stop]
    if cut is None or not spans:
        return one
    count = partial(_messages_from, spans[0], walked.survey.tags)
    messages, later = run_one(engine, count, cut, "count what a start deletes"), {span.path for span in spans[1:]}
    return one._replace(messages=messages + sum(run.messages for run in walked.runs if run.path in later))


def _stops(spans: Sequence[LogSpan], damage: Sequence[Damage], *, check_crc: bool) -> list[Damage]:
    """The stretches in which a broker stops, each from there on."""
    of_file = {span.path: span for span in spans}
    found: list[Damage | None] = []
    for one in damage:
        try:
            span = of_file[one.path]
            with span.open() as log:
                found.append(_stop(log, span, one, check_crc=check_crc))
        except FileNotFoundError:  # expired meanwhile
            continue
    return [one for one in found if one is not None]


def _stop(log: MappedFile, span: LogSpan, damage: Damage, *, check_crc: bool) -> Damage | None:
    """The first record there that is bad to a broker. It does not compare the offset in a record with the record's
    place, and only newer ones look at the size in a file's blank."""
    at, end = damage.at, damage.stop
    while at < end:
        start = at - span.file_start
        size, magic = struct.unpack(">ii", log.read(start, start + 8).ljust(8, b"\0"))
        if magic == layout.MAGIC_BLANK:
            kind = NEGATIVE_BLANK if size < 0 else LARGE_BLANK
            return None if 0 <= size <= span.stop - at else replace(damage, at=at, kind=kind)
        record = bytearray(log.read(start, start + max(size, 0)))
        record[_PHY_OFFSET] = at.to_bytes(8, "big")
        if not scan_at(record, at, [at], check_crc=check_crc)[1].all():
            return replace(damage, at=at)
        at += size
    return None


def _messages_from(span: LogSpan, tags: Tags, phy_offset: int) -> int:
    """How many messages of a file are there from an offset on."""
    try:
        with span.open() as log:
            at = max(phy_offset, span.file_start)
            return drained(FileWalk(log, replace(span, last=False), at, span.stop, tags=tags)).messages
    except FileNotFoundError:
        return 0
