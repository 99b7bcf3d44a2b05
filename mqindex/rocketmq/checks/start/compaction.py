"""The logs and queues of compacted topics (cleanup.policy=COMPACTION, since 5.1): what a broker's start needs of them.

    <store>/compaction/compactionLog/<topic>/<queueId>/<20 digits>      and the same below compactionCq

They are not read. Source: RocketMQ 5.1.0 to 5.5.0 `CompactionStore.load`, `CompactionLog.replaceFiles`,
`CompactionLog.TopicPartitionLog`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mqindex.files import disk
from mqindex.files.paths import base_name, join
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, kinds
from mqindex.rocketmq.checks.start.start_files import Entry, listed
from mqindex.rocketmq.kinds import subdirectories
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.settings import COMPACTION

_LOG, _QUEUES = "compactionLog", "compactionCq"
_REPLACED: Final = ".delete"


class CompactionFault(NamedTuple):
    """`certain`: no such broker starts; else nobody knows. `passing`: a broker that runs makes such a thing itself."""

    path: str
    reason: str
    certain: bool
    passing: bool
    finding: Finding


def compaction_is_on(options: StoreOptions) -> bool:
    """Whether a broker of 5.1 or later loads these files."""
    return options.value(COMPACTION)


def compaction_not_compared(found: Survey) -> Finding | None:
    """That there is something which is not read; None: there is no compacted topic."""
    home = join(found.options.root, "compaction")
    if found.queues.compacted or any(subdirectories(join(home, name)) for name in (_LOG, _QUEUES)):
        return catalogue.COMPACTION_NOT_COMPARED.finding(home)
    return None


def compaction_faults(options: StoreOptions) -> Iterator[CompactionFault]:
    """What keeps such a broker from starting, or may."""
    home = join(options.root, "compaction")
    for topic in sorted(subdirectories(join(home, _LOG))):
        for path in sorted(subdirectories(topic)):
            number = kinds.parsed_queue_id(base_name(path))
            if number is None:
                expected, got, remedy = "the number of a queue", base_name(path), "move it elsewhere"
                stray = catalogue.COMPACTION_STRAY.finding(path, expected=expected, got=got, remedy=remedy)
                yield CompactionFault(path, "a directory not named by a queue's number", True, False, stray)
                continue
            queue = join(home, _QUEUES, base_name(topic), str(number))
            if disk.is_directory(queue):
                yield from _faults(path, queue)


# ---- the files of one queue


def _faults(path: str, queue: str) -> Iterator[CompactionFault]:
    """`path`: of its log. Files of several lengths are not loaded, which stops 5.1.0 and no later broker."""
    log, units = _files(path), _files(queue)
    one_length = _have_one_length(log) and _have_one_length(units)
    strays = [one for one in (*log, *units) if _is_stray(one)] if one_length else []
    for one in strays:
        remedy = _remedy(one, log, units, queue)
        finding = catalogue.COMPACTION_STRAY.finding(one.path, expected="20 digits", got=one.name, remedy=remedy)
        yield CompactionFault(one.path, "not named by a number", True, one.name.endswith(_REPLACED), finding)
    if not strays and _names(log) != _names(units):
        expected = f"the names of files in {queue}"
        unlike = catalogue.COMPACTION_UNLIKE.finding(path, expected=expected, got="others")
        yield CompactionFault(path, f"its files are not named as those of {_QUEUES}", False, True, unlike)


def _remedy(stray: Entry, log: Sequence[Entry], units: Sequence[Entry], queue: str) -> str:
    """A compaction renames what it replaces, first of the log, then of the queue, and deletes it at its end."""
    kept, known = (_names([one for one in files if not _is_stray(one)]) for files in (log, units))
    replaced = {one.name.removesuffix(_REPLACED) for one in log if _is_stray(one)}
    if not stray.name.endswith(_REPLACED):
        return "move it elsewhere"
    if kept == known and not _files(join(queue, "compacting")):
        return "delete it; a compaction that has ended has replaced it"
    if known == kept | replaced and not kept & replaced:
        return f"a compaction has not ended: name it {stray.name.removesuffix(_REPLACED)} again"
    return f"a compaction has not ended: move the queue's directories in {_LOG} and in {_QUEUES} elsewhere"


def _is_stray(one: Entry) -> bool:
    return kinds.number_of(one.name) is None


def _names(files: Sequence[Entry]) -> set[str]:
    return {one.name for one in files}


def _have_one_length(files: Sequence[Entry]) -> bool:
    return len({one.size for one in files}) <= 1


def _files(directory: str) -> list[Entry]:
    return [one for one in listed([directory]) if not one.directory and one.size]
