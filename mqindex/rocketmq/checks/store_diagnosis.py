"""Everything that a check of a whole store finds, with each byte of its log read once.

The index files are checked first, each by itself and at its ends; so it is known in the one walk over the log which
entries each of them claims to hold. These are compared, or at least counted. Only a file that differs in the walk is
then compared once more, entry by entry, to find what differs, or that a crash left it so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, kinds
from mqindex.rocketmq.checks.check import Checked
from mqindex.rocketmq.checks.diagnosis import Diagnosis, check_files, conclude
from mqindex.rocketmq.checks.entry_check import EntryRun, EntryStretch
from mqindex.rocketmq.checks.log_check import Walked, walk_log
from mqindex.rocketmq.checks.queues.queue_diagnosis import QueueDiagnosis, diagnose_queues
from mqindex.rocketmq.checks.start.log_cut import checks_crc, with_cuts
from mqindex.rocketmq.checks.start.recovery import NOT_KNOWN, recoveries
from mqindex.rocketmq.checks.waiting import Waiting
from mqindex.rocketmq.checks.wanted_settings import find_unknown_tags
from mqindex.rocketmq.log.dledger import refuse_entries_after
from mqindex.rocketmq.pipeline.log_end import frames_end_now
from mqindex.rocketmq.pipeline.survey import Survey, survey_again


@dataclass(frozen=True, slots=True)
class StoreDiagnosis:
    """What is right and wrong with index and consume queues. `walked`: the log, as it was read for that."""

    index: Diagnosis
    queues: QueueDiagnosis
    walked: Walked


def diagnose_store(
    engine: Engine,
    found: Survey,
    *,
    deep: bool,
    split_size: int,
    every: int | None = None,
    zones: bool = False,
    out: str | None = None,
) -> StoreDiagnosis:
    """Check the log, the index and the queues of a store. `deep`: bodies and every index entry too.

    A log that DLedger goes on with is a `FileStateError`, also where nothing but index and queues shows it.

    `every`: count for a health report in the same pass, from one message in so many. `zones`: gather zone maps in it.
    `out`: what the index lacks stays there, as runs.
    """
    measure = every is not None
    checked = check_files(engine, found, range(len(found.index_files)), deep=False, measure=measure)
    stretches = [_stretch(found, one, deep=deep) for one in checked if one.good]
    reads = run_one(engine, recoveries, found, "look at the recovery")
    crc_from = 0 if deep else None
    if not deep and checks_crc(found.options):  # as the broker's next start
        crc_from = min((one.begin for one in reads), default=None)
    walked = walk_log(
        engine, found, split_size, crc_from=crc_from, stretches=[one for one in stretches if one], every=every,
        zones=zones,
    )  # fmt: skip
    reads = with_cuts(engine, walked, reads or NOT_KNOWN)
    wrong = _disagreeing(walked, checked, deep=deep)
    wrong |= _by_other_tags(engine, walked, {*wrong, *(at for at, one in enumerate(checked) if not one.good)})
    look = partial(_look_again, engine, walked, checked, deeply=lambda at: deep or at in wrong, measure=measure)
    grew = run_one(engine, frames_end_now, walked.survey, "look at the log's end") > walked.end
    look(wrong | _beyond_end(found, walked, checked), newest=grew)
    if walked.survey.tags != found.tags:  # of some files only the ends were asked
        left = {at for at in wrong if not checked[at].good}
        look(_by_other_tags(engine, walked, left), newest=False)
    conclusion = partial(conclude, engine, findings=list(walked.findings), reads=reads, split_size=split_size, out=out)
    index = conclusion(walked.survey, checked)
    waiting = Waiting(engine, walked.survey)
    while waiting.waits(_not_yet_indexed(index)):
        look(set(), newest=True)
        index = conclusion(walked.survey, checked)
    index = replace(index, findings=(*index.findings, *find_unknown_tags(engine, index)))
    queues = diagnose_queues(engine, found, deep=deep, split_size=split_size, walked=walked)
    run_one(engine, partial(refuse_entries_after, found.options), _after_end(checked, queues), "look after the log")
    queues = replace(queues, cut=max(one.end for one in reads))
    if any(one.behind for one in reads):
        index = replace(index, findings=_behind_damage(index.findings))
        queues = replace(queues, findings=_behind_damage(queues.findings))
    return StoreDiagnosis(index, queues, walked)


def _after_end(checked: Sequence[Checked], queues: QueueDiagnosis) -> list[int]:
    """The least phy offsets after the log's end, of each index file and of each queue."""
    units = [int(one.got) for one in queues.findings if one.kind == catalogue.QUEUE_BEYOND_LOG.name]
    return units + [one.beyond for one in checked if one.beyond is not None]


_BEHIND_DAMAGE: Final = {one.name: one for one in (catalogue.QUEUE_BEYOND_DAMAGE, catalogue.INDEX_BEYOND_DAMAGE)}


def _behind_damage(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those after the log's end where messages are that are whole: a repair asks before it takes them out."""
    return tuple(
        one if (kind := _BEHIND_DAMAGE.get(one.kind)) is None else replace(one, hint=kind.hint) for one in findings
    )


def of_the_log_as_read(engine: Engine, walked: Walked, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; if messages were written since the log's end was fixed, without those that they explain."""
    end = run_one(engine, frames_end_now, walked.survey, "look at the log's end")
    if end <= walked.end:
        return list(findings)
    grew = catalogue.LOG_GREW_MEANWHILE.finding(
        walked.survey.spans[-1].path, expected=f"its end at phy offset {walked.end}", got=end
    )
    return [*(one for one in findings if one.kind not in catalogue.OF_LATER_MESSAGES), grew]


def _look_again(
    engine: Engine,
    walked: Walked,
    checked: list[Checked],
    doubtful: set[int],
    *,
    newest: bool,
    deeply: Callable[[int], bool],
    measure: bool,
) -> None:
    """Check these files again. `newest`: and what a broker may have written to since: the last one, and new ones.

    `deeply`: of which every entry is compared.
    """
    if newest:
        known = walked.survey.index_files
        there = run_one(engine, kinds.index_paths, walked.survey.options.index, "look for new index files")
        newer = [path for path in there if path not in set(known)]
        doubtful |= {*range(max(len(checked) - 1, 0), len(checked) + len(newer))}
        walked.survey = replace(walked.survey, index_files=(*known, *newer))
    for deep in (False, True):
        which = [at for at in sorted(doubtful) if deeply(at) is deep]
        for at, one in zip(which, check_files(engine, walked.survey, which, deep=deep, measure=measure), strict=True):
            checked[at : at + 1] = [one]


def _not_yet_indexed(index: Diagnosis) -> int:
    """How many entries are missing after the last file, if they are those that a running broker is about to write."""
    last = [one for one in index.gaps if one.gap.before is None]
    return sum(one.entries for one in last if one.gap.stretch.stop - one.gap.stretch.start <= _BACKLOG)


_BACKLOG = 256 << 20  # bytes of log; no broker that works is further behind, and each look reads them again


def _stretch(found: Survey, one: Checked, *, deep: bool) -> EntryStretch | None:
    if one.begin is None or one.end is None or (deep and one.moved):
        return None  # moved entries are compared later, by `compare_moved`
    return EntryStretch(one.path, found.geometry.value, one.first, one.begin, one.end, counted=not deep)


def _by_other_tags(engine: Engine, walked: Walked, doubtful: set[int]) -> set[int]:
    """The doubtful files, if they show that another broker's rule for TAGS held for a while; else none."""
    if not doubtful:
        return set()
    before = walked.survey.tags
    again = partial(survey_again, doubtful=frozenset(doubtful))
    walked.survey = run_one(engine, again, walked.survey, "look for another broker")
    return doubtful if walked.survey.tags != before else set()


def _beyond_end(found: Survey, walked: Walked, checked: Sequence[Checked]) -> set[int]:
    """Files that were checked before it was known that the log ends earlier."""
    if walked.survey.spans == found.spans:
        return set()
    return {at for at, one in enumerate(checked) if not one.good or one.end_phy_offset >= walked.end}


def _disagreeing(walked: Walked, checked: Sequence[Checked], *, deep: bool) -> set[int]:
    """Good files with an entry that was not right in the walk, or with more or fewer than the log has there."""
    runs: dict[str, list[EntryRun]] = {}
    for run in walked.runs:
        for stretch in run.stretches:
            runs.setdefault(stretch.path, []).append(stretch)
    agree = _whole if deep else _as_many
    return {
        at
        for at, one in enumerate(checked)
        if one.good and one.begin is not None and not agree(one, runs.get(one.path, []))
    }


def _as_many(one: Checked, runs: Sequence[EntryRun]) -> bool:
    return sum(run.stop for run in runs) == one.entries + 1 - one.first


def _whole(one: Checked, runs: Sequence[EntryRun]) -> bool:
    """Whether the runs agree, and are without a gap from the first entry to the last."""
    borders = [(one.first, one.first), *((run.start, run.stop) for run in runs), (one.entries + 1, one.entries + 1)]
    chained = all(before[1] == after[0] for before, after in itertools.pairwise(borders))
    return chained and all(run.agrees for run in runs)
