"""Ranges of a commit log, which batch reads and streams of `rocketmq_commitlog` plan and read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from mqindex.columns.columns import Columns
from mqindex.errors import FileStateError, FormatError, sentence
from mqindex.files.paths import base_name
from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log.log_files import EMPTY, LogFile, Skipped, holes, newest_begun
from mqindex.rocketmq.log.log_scan import first_at
from mqindex.rocketmq.messages.body_column import decompressed_bodies
from mqindex.rocketmq.pipeline.splits import SPLIT_SIZE
from mqindex.rocketmq.scanning.matches import Matches
from mqindex.rocketmq.scanning.message_filter import MessageFilter
from mqindex.rocketmq.tally.log_zones import known_zones
from mqindex.spark.missing_files import require_seen
from mqindex.spark.options import SourceOptions
from mqindex.zones.cache import ZoneCache
from mqindex.zones.zone_map import ZoneMap

_LOG = logging.getLogger(__name__)
MESSAGE_COLUMNS = {
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "phy_offset": "bigint",
    "size": "int",
    "store_timestamp": "bigint",
    "born_timestamp": "bigint",
    "tags": "string",
    "keys": "string",
    "uniq_key": "string",
    "sys_flag": "int",
    "flag": "int",
    "body_crc": "int",
    "reconsume_times": "int",
    "prepared_transaction_offset": "bigint",
    "born_host": "string",
    "store_host": "string",
    "msg_id": "string",
}
BULKY_COLUMNS = {"body": "binary", "properties": "string"}
COLUMNS = {**MESSAGE_COLUMNS, **BULKY_COLUMNS}
FILTERS = ("topic", "queueId", "keys", "tags")
BATCH_OPTIONS = ("endOffset", "startTime", "endTime", "cache")
STREAM_OPTIONS = ("maxBytesPerTrigger", "maxMessagesPerTrigger")


@dataclass
class LogRange(InputPartition):
    """Messages that begin in [start, stop). `before_gap`: files are missing then, unless the log ends before.

    stretches : [start, stop) of each part of it that can hold a match; a message begins at each start. None: all can.
    """

    directories: list[str]
    start: int
    stop: int
    before_gap: bool = False
    stretches: list[tuple[int, int]] | None = None


def cut(files: Sequence[LogFile], directories: list[str], start: int, stop: int) -> Iterator[LogRange]:
    """The ranges in [start, stop) of what the files hold, none over a file's border."""
    for file in files:
        at, end = max(start, file.start), min(stop, file.stop)
        while at < end:
            border = min(at - (at - file.start) % SPLIT_SIZE + SPLIT_SIZE, end)
            yield LogRange(directories, at, border)
            at = border


def planned(files: Sequence[LogFile], directories: list[str], start: int, stop: int) -> Iterator[LogRange]:
    """The ranges in [start, stop). The log's end is in one of them: who plans reads no file to find it.

    One task reads all of that range, so what a broker writes meanwhile is read up to one point.
    """
    if not files:
        return
    tail, stop = files[newest_begun(files)].start, min(stop, files[-1].stop)
    end = next((at for at, _ in holes(files, tail, stop)), stop)
    yield from cut(files, directories, start, min(tail, stop))
    if max(start, tail) < end or end < stop:
        yield LogRange(directories, min(max(start, tail), end), end, before_gap=end < stop)
    yield from cut(files, directories, max(start, end), stop)


def narrowed(
    ranges: Iterable[LogRange], files: Sequence[LogFile], wanted: MessageFilter, cache: ZoneCache
) -> Iterator[LogRange]:
    """The ranges that can hold a match, by the zone maps that the cache has; none is made here."""
    tail = files[newest_begun(files)].start if files else 0
    known: dict[int, ZoneMap | None] = {}
    for part in ranges:
        file = next(file for file in files if part.start < file.stop)
        if file.start not in known:
            known[file.start] = _known_zones(cache, file, last=file.start >= tail)
        zones = known[file.start]
        if zones is not None and zones.end > part.start:
            stop = min(part.stop, zones.end)
            part.stretches = wanted.stretches(zones, part.start, stop)
            if stop < part.stop:
                part.stretches.append((stop, part.stop))
        if part.stretches != [] or part.before_gap:
            yield part


def _known_zones(cache: ZoneCache, file: LogFile, *, last: bool) -> ZoneMap | None:
    try:
        with file.open() as mapped:
            return known_zones(cache, file, mapped, last=last)
    except FileNotFoundError:  # a broker has deleted it: who reads it tells
        return None


def begin_of(files: Sequence[LogFile], skipped: Sequence[Skipped]) -> int:
    """Where a log begins, from `plain_log_files`; 0 for one without files.

    A broker deletes files, it cuts none: an empty one before others has lost its messages, and no broker starts on it.
    Source: RocketMQ 4.9.3 and 5.3.3 `MappedFileQueue.doLoad`; the newest may be empty, just made.
    """
    emptied = [int(base_name(one.path)) for one in skipped if one.reason == EMPTY]
    return min([files[0].start, *emptied]) if files else 0


def goes_on_at(files: Sequence[LogFile], phy_offset: int) -> int:
    """Where a broker writes after a phy offset: there, or from the next file on, however far away that begins.

    What was between has gone missing. Where the log ends inside a file, a broker deletes a later file at its start, or
    has made it in advance: nothing is missing. Source: RocketMQ 4.9.3 `CommitLog.recoverNormally`,
    `MappedFileQueue.truncateDirtyFiles`; `checkSelf` only logs a gap.
    """
    return next((max(phy_offset, file.start) for file in files if phy_offset < file.stop), phy_offset)


def lose(fail: bool, what: str, path: str, expected: str, got: Any = None, hint: str = "") -> None:
    """A `FileStateError`: messages are lost. Without `fail`, which is `failOnDataLoss`, it is logged."""
    if fail:
        hint += "failOnDataLoss=false reads what is left"
        raise FileStateError(what, path=path, expected=expected, got=got, hint=hint)
    _LOG.warning("%s; what is left is read", sentence(what, path, expected=expected, got=got))


def opened_log(part: LogRange) -> CommitLog:
    """The log in a worker, which must see it as the plan did: a broker deletes its oldest files only."""
    try:
        log = CommitLog.open(part.directories)
    except FileNotFoundError as error:
        require_seen(error.filename, False)
        raise
    require_seen(part.directories[0], bool(log.files) and log.files[-1].stop >= part.stop)
    log._trust(part.stop)  # the plan, which knows the log's end, ends there or before
    return log


def holds(log: CommitLog, part: LogRange) -> bool:
    """Whether the log's files have all of the range."""
    return not any(holes(log.files, part.start, part.stop))


def is_whole(log: CommitLog) -> bool:
    """Whether no file is missing between those with messages."""
    return not log.files or not any(holes(log.files, log.min_phy_offset, log.files[newest_begun(log.files)].start))


def filter_of(given: SourceOptions) -> MessageFilter:
    """What the options ask for."""
    topics, queue_ids = given.texts("topic"), given.integers("queueId")
    return MessageFilter.of(
        topics, queue_ids, given.time("startTime"), given.time("endTime"), given.texts("keys"), given.text("tags")
    )


def messages(
    log: CommitLog,
    part: LogRange,
    columns: Sequence[str],
    wanted: MessageFilter,
    *,
    check_crc: bool,
    decompress: bool,
    fail: bool,
) -> Iterator[pa.Table]:
    """The messages of a range that match. Damage in it is an error; without `fail`, `failOnDataLoss`, it is logged."""
    plain = decompress and "body" in columns
    taken = tuple(dict.fromkeys((*columns, "sys_flag"))) if plain else tuple(columns)
    found = Matches(
        wanted, taken, check_crc=check_crc, looking=lambda: None, read=lambda _: None, damaged=log._record
    )  # fmt: skip
    begun = part.stretches is not None
    for start, stop in [(part.start, part.stop)] if part.stretches is None else part.stretches:
        of_file = partial(_of_file, found, start, stop, since=part.start, is_begin=begun, good=part.stop)
        for batch in log._over_files(start, stop, of_file):
            tell(log, fail)
            yield pa.table(_with_bodies(batch, fail).select(columns) if plain else batch)
        tell(log, fail)


def _with_bodies(batch: Columns, fail: bool) -> Columns:
    """The messages, with bodies as their producers sent them. One that does not decompress is damage, too."""

    def broken(row: int, error: FormatError) -> None:
        if fail:
            raise FormatError(error.what, hint="decompress=false reads it as stored, failOnDataLoss=false as null")
        _LOG.warning("%s; its body is null", error)

    return Columns({**batch, "body": decompressed_bodies(batch["body"], batch["sys_flag"], broken)}, len(batch))


def _of_file(
    found: Matches, start: int, stop: int, file: LogFile, last: bool, *, since: int, is_begin: bool, good: int
) -> Iterator[Columns]:
    """`since`: what begins before it is left out. `is_begin`: a message begins at `start`. `good`: who plans knows that
    the log ends there or later.
    """
    with file.open() as mapped:
        begins = is_begin and start >= file.start
        at = start if begins else first_at(file, mapped, start, stop, last=last, known=good)
        yield from found.of(file, mapped, at, stop, start=since, last=last)


def tell(log: CommitLog, fail: bool) -> None:
    """What was found in the log: damage is an error, frames behind its end, which no broker reads, are logged."""
    while log.damage:
        one = log.damage.pop(0)
        if fail and not one.behind:
            hint = "`mqindex verify` shows more; failOnDataLoss=false leaves it out"
            raise FormatError(f"the log is damaged: {one}", hint=hint)
        _LOG.warning("%s", one)
