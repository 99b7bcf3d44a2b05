"""Offsets and times looked up in Kafka's partitions, segments and indexes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mqindex.cli.broker import Question
from mqindex.cli.kafka import kinds
from mqindex.cli.kafka.segments import open_segment
from mqindex.cli.keys import key_batches
from mqindex.cli.printing.output import Column, Rows, command_line, print_json
from mqindex.cli.times import milliseconds
from mqindex.cli.trouble import Trouble, say
from mqindex.files.paths import absolute, parent_of
from mqindex.wording.text import iso
from mqindex.wording.verdict import BEFORE_SEGMENTS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from mqindex.kafka import PartitionLog

    Targets = npt.NDArray[np.int64]

_BATCH = ("position", "size", "base_offset")
Answer = dict[str, Any]  # the target, and where it is; None: nowhere
Find = Callable[[str, "Targets"], Iterator[Answer]]


def print_answers(kind: str, path: str, question: Question, *, as_json: bool) -> int:
    """Print one line for each answer; returns how many targets were found."""
    by_time = bool(question.timestamps)
    if by_time == bool(question.offsets):
        raise Trouble(f"expected either --offset or --timestamp, got {'both' if by_time else 'none'}")
    if question.csv:
        return _print_csv(kind, path, question)
    find = _FINDS.get((kind, by_time))
    if find is None:
        raise Trouble(f"{path} is {kinds.KINDS[kind]}: expected {'--offset' if by_time else '--timestamp'}")
    found, rows = 0, None
    for targets in _targets(question.timestamps or question.offsets, by_time=by_time):
        for answer in find(path, targets):
            there = list(answer.values())[1] is not None
            found += there
            if as_json:
                print_json("query", answer)
            elif there:
                rows = rows or Rows([Column(name, 0 if name in _TEXTS else 20) for name in _with_time(answer)])
                rows.write([list(_with_time(answer).values())])
        sys.stdout.flush()
    if not found:
        say(f"nothing is found there; `{command_line('info', path)}` says what it reaches")
    return found


_TEXTS = ("segment", "time", "topic")


def _print_csv(kind: str, path: str, question: Question) -> int:
    """The offset of each partition at one time, in the form of Kafka's own tool; returns how many there are."""
    if kind not in (kinds.LOG_DIR, kinds.PARTITION) or len(question.timestamps) != 1:
        raise Trouble("--csv: expected a log dir or a partition, and one --timestamp TIME")
    from mqindex.kafka import offsets_for_time

    (target,) = (int(one) for batch in _targets(question.timestamps, by_time=True) for one in batch)
    found = offsets_for_time(path, target)
    for topic, *numbers in zip(
        found["topic"].to_pylist(), found["partition"].tolist(), found["offset"].tolist(), strict=True
    ):
        sys.stdout.write(",".join([topic, *map(str, numbers)]) + "\n")
    return len(found)


def _with_time(answer: Answer) -> Answer:
    """The answer, with its time also as people write it."""
    moment = answer.get("found_timestamp", answer.get("entry_timestamp"))
    return answer if moment is None else {**answer, "time": iso(moment) if moment >= 0 else ""}


def _targets(arguments: Sequence[str], *, by_time: bool) -> Iterator[Targets]:
    import numpy as np

    read = milliseconds if by_time else _offset
    for batch in key_batches(arguments, what=("time", "--timestamp TIME") if by_time else ("offset", "--offset N")):
        try:
            yield np.array([read(text) for text in batch], np.int64)
        except (OverflowError, ValueError) as error:
            wrong = "expected 64 bits, got more" if isinstance(error, OverflowError) else error
            raise Trouble(f"--{'timestamp' if by_time else 'offset'}: {wrong}") from None


def _offset(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r}: expected an offset") from None


def _entries(index: str, names: Sequence[str], path: str, targets: Targets) -> Iterator[Answer]:
    """Of an index, by the name of its class."""
    from mqindex import kafka

    with getattr(kafka, index).open(path) as opened:
        found = opened.lookup_many(targets)
    for row in zip(*(column.tolist() for column in (targets, *found)), strict=True):
        yield dict(zip(names, row, strict=True))


def _batches_of_segment(path: str, targets: Targets) -> Iterator[Answer]:
    with open_segment(path) as segment:
        for offset in targets.tolist():
            yield {"offset": offset, **dict(zip(_BATCH, segment.translate_offset(offset) or (None,) * 3, strict=True))}


def _records_of_segment(path: str, targets: Targets) -> Iterator[Answer]:
    if sentinels := [each for each in targets.tolist() if -5 <= each < 0]:
        raise Trouble(
            f"--timestamp {sentinels[0]} asks for an end of a partition, which {path} is a part of: "
            f"query {parent_of(absolute(path))}"
        )
    with open_segment(path) as segment:
        for timestamp in targets.tolist():
            yield _record(timestamp, segment.find_offset_by_timestamp(timestamp))


def _record(timestamp: int, found: tuple[int, int] | None) -> Answer:
    moment, offset = found or (None, None)
    return {"timestamp": timestamp, "found_offset": offset, "found_timestamp": moment}


def _batches(path: str, targets: Targets) -> Iterator[Answer]:
    from mqindex.kafka import PartitionLog

    with PartitionLog.open(path) as log:
        _say_what_is_not_here(log, int(targets.min()))
        for offset in targets.tolist():
            found = log.translate_offset(offset)
            segment, *where = found or (None,) * 4
            yield {"offset": offset, **dict(zip(_BATCH, where, strict=True)), "segment": segment}


def _records(path: str, targets: Targets) -> Iterator[Answer]:
    from mqindex.kafka import PartitionLog

    yield from _records_of(PartitionLog.open(path), targets)


def _records_of(log: PartitionLog, targets: Targets) -> Iterator[Answer]:
    with log:
        moments, offsets = log.offsets_for_timestamps(targets)
    for timestamp, moment, offset in zip(targets.tolist(), moments.tolist(), offsets.tolist(), strict=True):
        yield _record(timestamp, None if offset < 0 else (moment, offset))


def _records_of_log_dir(path: str, targets: Targets) -> Iterator[Answer]:
    """Of each partition in use."""
    from mqindex.kafka import PartitionLog
    from mqindex.kafka.directories.log_dir import list_partitions
    from mqindex.kafka.directories.offset_checkpoint import log_start_offsets

    starts = log_start_offsets(path)
    for one in list_partitions(path):
        if one.state is None:
            for answer in _records_of(PartitionLog._of(one.path, starts), targets):
                moment, offset = answer["found_timestamp"], answer["found_offset"]
                yield {
                    "timestamp": answer["timestamp"], "found_offset": offset, "found_timestamp": moment,
                    "topic": one.topic, "partition": one.partition,
                }  # fmt: skip


def _say_what_is_not_here(log: PartitionLog, offset: int) -> None:
    """That the log begins before its segments, where an offset is asked that may be there."""
    from mqindex.kafka.directories.offset_checkpoint import start_before

    oldest = log.segments[0].base_offset if log.segments else 0
    start = start_before(log.directory, oldest)
    if start is not None and offset < oldest:
        say(f"{log.directory}: {BEFORE_SEGMENTS.format(start, oldest - 1)}")


_FINDS: Final[dict[tuple[str, bool], Find]] = {  # by the kind, and whether the target is a time
    (kinds.OFFSET_INDEX, False): partial(_entries, "OffsetIndex", ("offset", "entry_offset", "position")),
    (kinds.TIME_INDEX, True): partial(_entries, "TimeIndex", ("timestamp", "entry_timestamp", "entry_offset")),
    (kinds.SEGMENT, False): _batches_of_segment,
    (kinds.SEGMENT, True): _records_of_segment,
    (kinds.PARTITION, False): _batches,
    (kinds.PARTITION, True): _records,
    (kinds.LOG_DIR, True): _records_of_log_dir,
}
