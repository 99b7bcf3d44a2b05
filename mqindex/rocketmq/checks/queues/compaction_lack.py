"""Messages that the own log of a compacted topic lacks: a broker adds those that it dispatches, and nobody else does.

When it starts it dispatches what is behind the end of all its queues, and after an unclean end what it reads again.
Once a repair has written the queues up to the log's end, it adds no other messages, and no consumer gets these.

Source: RocketMQ 5.1.0 to 5.5.0 `CompactionService.putRequest`, `CompactionLog.asyncPutMessage`,
`SparseConsumeQueue.recover`, `CommitLog.recoverNormally`, `CommitLog.recoverAbnormally`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.log_columns import columns_at
from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.log_check import Walked
from mqindex.rocketmq.checks.start.compaction import (
    compacted_queues,
    compacted_topics,
    queue_path,
)
from mqindex.rocketmq.checks.start.recovery import Recovery, reach_of_queues
from mqindex.rocketmq.checks.start.start_files import is_log_file, listed
from mqindex.rocketmq.log.log_columns import as_columns
from mqindex.rocketmq.log.log_entries import FileWalk, units_of
from mqindex.rocketmq.pipeline.split_walk import SplitRange, SplitWalk, counts, walk_split
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.queue.batch.batch_units import BATCH_UNIT, are_valid
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules


class CompactionLack(NamedTuple):
    """How many messages of the log one queue of a compacted topic lacks, from a queue offset on.

    Not counted is what the next start adds whatever is written before. `at_stake`: those that it adds, or most of them,
    as long as no queue is written.
    """

    path: str
    queue_offset: int
    messages: int
    at_stake: int

    def finding(self) -> Finding:
        """What consumers do not get."""
        expected = f"{plural(self.messages, 'message')} from queue offset {self.queue_offset} on"
        return catalogue.COMPACTION_LACKS.finding(self.path, expected=expected, got="none")


def find_lacks(engine: Engine, walked: Walked, reads: Sequence[Recovery]) -> tuple[CompactionLack, ...]:
    """What each queue of a compacted topic lacks of a log; nothing while a broker runs, which is adding it.

    `reads`: what the next start reads of its log; empty: it is not known.
    """
    known = run_one(engine, _look, walked.survey, "look at the compacted topics")
    if known is None:
        return ()
    again = max((one.dispatched if one.unclean else walked.end for one in reads), default=walked.end)
    searches = list(_searches(walked, known, again))
    weights = [search.stop - search.start for search in searches]
    lacks: dict[QueueName, _Lack] = {}
    for split in engine.map(_search, searches, name="check the compacted topics", weights=weights, unit="byte"):
        for name, lack in split.lacks:
            lacks[name] = lacks.get(name, _Lack()).then(lack)
    return tuple(
        CompactionLack(queue_path(walked.survey.options, name), lack.queue_offset, lack.messages, lack.at_stake)
        for name, lack in sorted(lacks.items())
        if lack.messages
    )


@dataclass(frozen=True, slots=True)
class _Lack:
    """The same of a stretch of the log. `anew`: the topic was created again in it; what was before does not count."""

    queue_offset: int = 0
    messages: int = 0
    at_stake: int = 0
    anew: bool = False

    def then(self, later: _Lack) -> _Lack:
        """With what a later stretch has."""
        if later.anew or not self.messages:
            return replace(later, anew=self.anew or later.anew)
        return replace(self, messages=self.messages + later.messages, at_stake=self.at_stake + later.at_stake)


class _Known(NamedTuple):
    """The compacted topics; after which queue offset their own queues end; up to which phy offset all others reach."""

    topics: frozenset[str]
    ends: Mapping[QueueName, int]
    reach: int


def _look(found: Survey) -> _Known | None:
    options = found.options
    topics = compacted_topics(options)
    if not topics or found.is_in_use():
        return None
    ends = {name: _end(queue_path(options, name)) for name in compacted_queues(options) if name[0] in topics}
    return _Known(topics, ends, reach_of_queues(options))


def _end(directory: str) -> int:
    """The queue offset after the last unit."""
    for file in reversed([one for one in listed([directory]) if is_log_file(one) and one.size >= BATCH_UNIT.itemsize]):
        with MappedFile.open(file.path) as mapped:
            rows = np.frombuffer(memoryview(mapped.map), BATCH_UNIT, count=mapped.size // BATCH_UNIT.itemsize)
            valid = are_valid(rows)
            count = len(rows) if valid.all() else int(np.argmin(valid))
            if count:
                return int(rows["msg_base_offset"][count - 1]) + int(rows["batch_size"][count - 1])
    return 0


# ---- the log's messages after these ends


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search(SplitRange):
    """A stretch of the log, from a frame on. `ends`: of the queues that are behind.

    The next start adds the messages from the phy offset `reach` on, as no queue has them, and from `again` on anyway.
    """

    rules: QueueRules
    ends: Mapping[QueueName, int]
    reach: int
    again: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lacks(SplitWalk):
    lacks: tuple[tuple[QueueName, _Lack], ...] = ()


def _searches(walked: Walked, known: _Known, again: int) -> Iterator[_Search]:
    """Where the log has messages of queues that are behind it."""
    found = walked.survey
    nexts: dict[QueueName, int] = {}
    for run in walked.runs:
        of_topics = (one for one in run.queues if one.topic in known.topics and one.next >= 0)
        nexts |= {(one.topic, one.queue_id): one.next for one in of_topics}
    ends = {name: known.ends.get(name, 0) for name, following in nexts.items() if following > known.ends.get(name, 0)}
    for span, start, stop in walked.stretches_of(lambda queue: (queue.topic, queue.queue_id) in ends):
        yield _Search(
            span=span,
            start=start,
            stop=stop,
            resync=False,
            tags=found.tags,
            rules=found.queues.rules,
            ends=ends,
            reach=known.reach,
            again=again,
        )


def _search(search: _Search) -> _Lacks:
    return walk_split(search, partial(_lacks, search), _Lacks())


def _lacks(search: _Search, log: MappedFile, first: int) -> _Lacks:
    table = search.rules.table()
    walk = FileWalk(log, search.span, first, search.stop, tags=search.tags, queues=table)
    lacks: dict[QueueName, _Lack] = {}
    for name, units in units_of(walk, table, search.ends.__contains__):
        lacks[name] = lacks.get(name, _Lack()).then(_lack(search, log, units, search.ends[name]))
    return _Lacks(lacks=tuple(lacks.items()), **counts(walk, first))


def _lack(search: _Search, log: MappedFile, units: npt.NDArray[Any], end: int) -> _Lack:
    """What a queue that ends there lacks of these units: only messages with keys belong in it."""
    begins = np.flatnonzero(units["queue_offset"] == 0)
    units = units[begins[-1] :] if len(begins) else units
    units = units[(units["queue_offset"] >= end) & (units["phy_offset"] < search.again)]
    made = columns_at(log.map, search.span.file_start, units["phy_offset"], units["size"], ("keys",))
    keys = as_columns(*made)["keys"].to_pylist()
    units = units[np.array([bool(text and text.strip()) for text in keys], np.bool_)]
    return _Lack(
        queue_offset=int(units["queue_offset"][0]) if len(units) else 0,
        messages=len(units),
        at_stake=int(np.count_nonzero(units["phy_offset"] >= search.reach)),
        anew=len(begins) > 0,
    )
