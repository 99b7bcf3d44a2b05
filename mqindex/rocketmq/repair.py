"""Repair: index and consume queues brought back in place. What is right stays untouched."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

from mqindex._options import with_options_of
from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.publishing import exchange_all
from mqindex.engines.tasks import held, marked, require_seen, run_one, scratch_in
from mqindex.errors import FileStateError, MQIndexError
from mqindex.files import disk
from mqindex.files.backups.backup import backup_in
from mqindex.files.backups.exchange import Change, Exchange, refuse_linked
from mqindex.files.paths import join, parent_of
from mqindex.files.places.place import require_here
from mqindex.files.results import staging
from mqindex.files.rights import as_owner_of
from mqindex.report import Finding, RepairReport, left_or_repaired
from mqindex.rocketmq import catalogue, kinds
from mqindex.rocketmq.checks.diagnosis import Diagnosis
from mqindex.rocketmq.checks.log_check import Walked
from mqindex.rocketmq.checks.queues.queue_diagnosis import QueueDiagnosis
from mqindex.rocketmq.checks.store_diagnosis import StoreDiagnosis, diagnose_store
from mqindex.rocketmq.checks.wanted_settings import refuse, wanted_settings
from mqindex.rocketmq.directories import store as stores
from mqindex.rocketmq.mending.index_repair import mend_index, planned_actions
from mqindex.rocketmq.mending.queue_repair import MendedQueue, mend_queues, move_strays, planned_queue_actions
from mqindex.rocketmq.options import StoreArguments, StoreOptions, store_options
from mqindex.rocketmq.pipeline.parts import check_parts
from mqindex.rocketmq.pipeline.splits import SPLIT_SIZE, split_size_for
from mqindex.rocketmq.pipeline.survey import (
    Survey,
    require_directories,
    require_lengths,
    require_log,
    require_read,
    start_report,
    survey_in_place,
)
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.verify import findings_of
from mqindex.undo import take_back


@with_options_of(store_options)
def repair(
    store: str | os.PathLike[str],
    *,
    parts: Iterable[str] | None = None,
    deep: bool = False,
    dry_run: bool = False,
    cut_damaged: bool = False,
    replace_served: bool = False,
    engine: Engine | None = None,
    **given: Unpack[StoreArguments],
) -> RepairReport:
    """Restore every index entry and every unit of the consume queues of a stopped broker's store, in place.

    Index files that verify stay untouched; with `deep` every entry of theirs is compared with the log. New files get
    exactly the entries of the gap that they fill, under names that sort into place; a last file that is not full is
    continued. Where `abort` exists, the checkpoint is moved up, or the broker would delete the repaired file at its
    next start.

    A queue, also a batch queue, that is missing or disagrees with the log is written anew in a scratch, and the files
    that differ are exchanged; units of messages that the log no longer holds are kept. What is in a queue's directory
    and keeps the broker from starting is moved away. Replaced files and the old checkpoint go to
    `<store>/mqindex-backup-<UTC>/`, and `undo_repair` puts them back.

    Parameters
    ----------
    store : path of a store's root.
    deep : compare every entry of the index files with the log.
    dry_run : only report it, write nothing; as `verify`, also beside a running broker.
    cut_damaged : also repair a store whose newest log file is bad somewhere before whole messages that queues have. A
        broker's start cuts log and queues there; the repair does so with queues and index, and gives these messages up.
    replace_served : also repair queues in which a broker gave queue offsets a second time: consumers no longer get the
        messages with these offsets that they get now, but the earlier ones, or the later where they began again at 0.
        The finding names them: `got.messages`, the first 10000, each with queue_offset, phy_offset, msg_id and keys.
    parts : what to repair, of "index" and "consumequeue", which has the batch queues too; None: both.
    config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options, as for `rebuild`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    RepairReport
        `findings`: those that `verify` makes after it (with `dry_run`: before it), and as an info with the hint
        "repaired" those that are gone; `actions` what was done. Where it changed files, it looks at the store again.

    Raises
    ------
    StoreInUseError
        A broker holds the store.
    GeometryError
        New index files would need a geometry that was not given and that nothing shows; or the files refute the given
        one.
    FileStateError
        The same for the broker's version, the length of queue files or delay levels; or a batch queue is missing whose
        topic has none by config/topics.json; or queues are wrong while the log has messages of compacted topics, which
        only a broker adds there, as long as its queues lack them too; or the commit log is missing, or what is in the
        place of the index or the queues is no directory; or a worker of a cluster does not see the files as the
        others do. Or a repair takes messages out of a queue that consumers get now, and `replace_served` is False.
        Or the next start cuts the log at a bad record of its newest file, so that a repair takes whole messages behind
        it out of queues and index, and `cut_damaged` is False. Or the directory of a topic or queue is a link.
    RebuildError
        A worker died; nothing was published, or, if it died while files got their places, each is the old or the new
        one.

    Notes
    -----
    Interrupted at any point, every file is the old or the new one, and a second run finishes.
    Source: RocketMQ 4.9.3 `IndexService.load`, `buildIndex`, `ConsumeQueue`, `DefaultMessageStore.load`.

    Examples
    --------
    >>> repair("store", dry_run=True).ok, repair("store").ok, repair("store").actions
    (False, True, [])
    """
    wanted, order = check_parts(parts), store_options(store, **given)
    require_here(order.root)
    with as_owner_of(order.root, reading=True):
        if not dry_run:
            refuse_linked(stores.linked_directories(order.root))
        return repair_store(
            order, wanted, deep=deep, dry_run=dry_run, cut_damaged=cut_damaged, replace_served=replace_served,
            engine=engine,
        )  # fmt: skip


def repair_store(
    options: StoreOptions,
    wanted: frozenset[str],
    *,
    deep: bool = False,
    dry_run: bool = False,
    cut_damaged: bool = False,
    replace_served: bool = False,
    engine: Engine | None = None,
    look_again: bool = True,
) -> RepairReport:
    """`repair`, by options that are known; `look_again` False: its findings are those before it."""
    started = time.perf_counter()
    unseen = chosen_engine(engine)
    engine = require_seen(unseen, stores.directories_of(options.root, options.commitlog))
    found = _surveyed(engine, options)
    report = start_report(RepairReport(options.root, dry_run=dry_run), found)
    if dry_run:
        size = split_size_for(found.log_bytes)
        seen = diagnose_store(engine, found, deep=deep, split_size=size)  # as verify: a broker may be writing
        found_wrong = _chosen(engine, wanted, seen)
        report.findings, report.actions = findings_of(engine, seen), found_wrong.actions()
    else:
        with held(engine, stores.hold_writers, options.root):
            with _scratch(engine, options) as (seeing, scratch):
                held_store = replace(_surveyed(seeing, options), held=True)  # another repair may have been there before
                seen = diagnose_store(seeing, held_store, deep=deep, split_size=SPLIT_SIZE, out=scratch)
                found_wrong = _chosen(seeing, wanted, seen)
                if not cut_damaged:
                    _refuse_cut(seen)
                if not replace_served:
                    _refuse_served(found_wrong)
                report.findings = findings_of(seeing, seen)
                _mend(seeing, found_wrong, scratch, report)
            if look_again and report.backup is not None:
                report.findings = _left_or_repaired(unseen, options, report.findings, deep)
    report.settings["broker_version"] = seen.walked.survey.version.reported
    report.messages = found_wrong.messages
    report.bytes = found_wrong.log_bytes
    report.seconds = time.perf_counter() - started
    return report


def _left_or_repaired(engine: Engine, options: StoreOptions, before: Sequence[Finding], deep: bool) -> list[Finding]:
    """What is left to find, and, as infos, what is not found any more."""
    try:
        seeing = require_seen(engine, stores.directories_of(options.root, options.commitlog))
        found, size = replace(_surveyed(seeing, options), held=True), SPLIT_SIZE
        after = findings_of(seeing, diagnose_store(seeing, found, deep=deep, split_size=size))
    except (MQIndexError, OSError):  # all is done; what is left is not known, so nothing is called repaired
        return list(before)
    return left_or_repaired(before, after, kept=catalogue.TAGS_UNKNOWN.name)  # what was written may not be right


def _surveyed(engine: Engine, options: StoreOptions) -> Survey:
    """The survey of a store that can be repaired; else an error that says what has to be there first."""
    found = run_one(engine, survey_in_place, options, "look at the files")
    require_log(found)
    require_read(found)
    require_directories(found)
    require_lengths(found)
    return found


def undo_repair(
    store: str | os.PathLike[str], backup: str | os.PathLike[str], *, dry_run: bool = False
) -> RepairReport:
    """Take a repair of a stopped broker's store back: its files are again what and where they were before.

    What is in their places goes to a backup of its own, so that this can be taken back too. Of several repairs the
    last one is taken back first. The files of the backup are first compared with the checksums in its record.

    Parameters
    ----------
    store : path of a store's root.
    backup : path or name of the backup in it, `RepairReport.backup`; gone afterwards, as its files are in place again.
    dry_run : only check the backup and say what would be done; write nothing.

    Returns
    -------
    RepairReport
        `actions` are what was done, `out_files` what was put back, `backup` the new one, if anything went there.
        `findings`: a warning for each file that a broker wrote to since; what it wrote is in the new backup only.

    Raises
    ------
    StoreInUseError : a broker holds the store.
    FileNotFoundError : no such backup.
    FileStateError : no backup, one that does not say what the repair did, one of whose files is not what was put
        there, or one with a newer one that is to be put back first.

    Notes
    -----
    Interrupted at any point, every file is the old or the new one, and a second call finishes.
    Source: RocketMQ 4.9.3 `IndexService.load`, which takes every file of the directory.

    Examples
    --------
    >>> os.truncate("store/index/" + max(os.listdir("store/index")), 1000)
    >>> report = repair("store")
    >>> report.ok, undo_repair("store", report.backup).ok
    (True, True)
    """
    options = store_options(store)
    require_here(options.root)
    stores.require_store(options.root)
    hold = partial(_held_and_swept, options)
    return take_back(options.root, backup, [options.root], hold, catalogue.WRITTEN_SINCE, dry_run=dry_run)


@contextmanager
def _held_and_swept(options: StoreOptions) -> Iterator[None]:
    with stores.hold_writers(options.root):
        _sweep(options)
        yield


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What is wrong with the chosen parts."""

    index: Diagnosis | None
    queues: QueueDiagnosis | None

    def findings(self) -> list[Finding]:
        both = [one for part in (self.index, self.queues) if part is not None for one in part.findings]
        return list(dict.fromkeys(both))

    def actions(self) -> list[str]:
        actions = planned_actions(self.index) if self.index is not None else []
        return actions + (planned_queue_actions(self.queues) if self.queues is not None else [])

    @property
    def log_bytes(self) -> int:
        return max(part.survey.log_bytes for part in (self.index, self.queues) if part is not None)

    @property
    def messages(self) -> int:
        return max(part.messages for part in (self.index, self.queues) if part is not None)


def _chosen(engine: Engine, wanted: frozenset[str], seen: StoreDiagnosis) -> _Wrong:
    """The parts that were asked for; an error where mending them takes a setting that nothing shows."""
    wrong = _Wrong(seen.index if "index" in wanted else None, seen.queues if "consumequeue" in wanted else None)
    refuse(wanted_settings(engine, wrong.index, wrong.queues))
    if wrong.queues is not None:
        _refuse_undeclared(wrong.queues)
        _refuse_compacted(wrong.queues, seen.walked)
    return wrong


def _refuse_served(wrong: _Wrong) -> None:
    """Messages that consumers get now leave a queue only where that was asked for."""
    for one in wrong.findings():
        if one.kind == catalogue.OFFSETS_SERVED_TWICE.name:
            raise FileStateError(
                "a repair would take messages out of a queue that consumers get now",
                path=one.path,
                expected=one.expected,
                got=one.got,
                hint="allow it with replace_served=True (mqindex repair --replace-served), or repair the index only "
                "(parts=, --parts index)",
            )


def _refuse_cut(seen: StoreDiagnosis) -> None:
    """Messages that are whole in the log leave queues and index only where that was asked for."""
    end = seen.walked.behind
    if end is None:
        return
    for one in seen.index.findings:
        if one.kind == catalogue.LOG_CUT_AT_NEXT_START.name and (one.path, one.at) == (end.path, end.position):
            raise FileStateError(
                "a repair would take messages out of queues and index that are whole in the log",
                path=one.path,
                at=one.at,
                expected=one.expected,
                got=f"{one.got}, and {plural(end.behind, 'whole message')} behind it that queues have",
                hint="restore the log file from a replica first; without one, the next start gives these messages up "
                "anyway: cut_damaged=True (mqindex repair --cut-damaged) lets the repair do so too",
            )


def _refuse_undeclared(queues: QueueDiagnosis) -> None:
    """With a batch queue of a topic that has none by its configuration no broker starts; with the other queues alone,
    it never writes this one."""
    declared = queues.survey.queues.declared
    for queue in queues.batch_queues:
        if not queue.good and not queue.files and declared is not None and queue.topic not in declared:
            raise FileStateError(
                "a batch queue is missing whose topic has none",
                path=join(queues.survey.options.root, "config", "topics.json"),
                expected=f"queue.type BatchCQ of topic {queue.topic}, as its messages in the log show",
                got="another",
                hint="restore it first; or repair the index only (parts=, --parts index)",
            )


def _refuse_compacted(queues: QueueDiagnosis, walked: Walked) -> None:
    """A broker adds to compacted topics what its queues lack: with repaired ones it might add nothing, for good."""
    if queues.missing or queues.bad or queues.bad_batches:
        compacted = queues.survey.queues.compacted
        there = sorted(compacted.intersection(queue.topic for run in walked.runs for queue in run.queues))
        if there:
            raise FileStateError(
                "a repair of the queues may keep messages from compacted topics",
                path=join(queues.survey.options.root, "compaction"),
                expected="queues that only a broker writes",
                got=f"{plural(len(there), 'compacted topic')} in the log, the first of them {there[0]}",
                hint="move consumequeue/ and batchconsumequeue/ elsewhere and start the broker, which writes them anew "
                "and adds the messages; or repair the index only (parts=, --parts index)",
            )


def _scratch(engine: Engine, options: StoreOptions) -> AbstractContextManager[tuple[Engine, str]]:
    return scratch_in(engine, run_one(engine, _prepare, options, "make a scratch directory"))


def _prepare(options: StoreOptions) -> str:
    """Where index files are built; first removes what a killed run left, before anything is read."""
    _sweep(options)
    return staging.home_of(options.index)


def _sweep(options: StoreOptions) -> None:
    homes = map(staging.home_of, (options.index, options.consume_queue, options.batch_consume_queue))
    for home in {options.root, *homes, *_written(options.root)}:
        if disk.is_directory(home):
            staging.sweep(home)


def _mend(engine: Engine, wrong: _Wrong, scratch: str, report: RepairReport) -> None:
    """Everything is built before the first file changes its place."""
    changes: list[Change] = []
    with ExitStack() as stack:
        if wrong.index is not None:
            changes += mend_index(engine, wrong.index, scratch, report)
        if wrong.queues is not None:
            mended = _mend_queues(engine, wrong.queues, scratch, stack)
            new = [change for queue in mended for change in queue.changes]
            changes += sorted(new, key=lambda change: change.name.partition(os.sep)[0])  # units, then extensions
            report.actions += planned_queue_actions(wrong.queues)
            report.units = sum(queue.units for queue in mended)
        if changes:
            _publish(engine, changes, report)


def _mend_queues(engine: Engine, queues: QueueDiagnosis, scratch: str, stack: ExitStack) -> list[MendedQueue]:
    """Each kind of queues is built in its own file system, both together where that is the same."""
    options = queues.survey.options
    places = {options.consume_queue: (*queues.missing, *queues.bad), options.batch_consume_queue: queues.bad_batches}
    wanted: dict[str, frozenset[QueueName]] = {}
    for directory, names in places.items():
        home = run_one(engine, staging.home_of, directory, "look for the queues")
        wanted[home] = wanted.get(home, frozenset()).union(names)
    mended = move_strays(queues)
    for home, some in wanted.items():
        seeing, there = engine, scratch
        if some and home != parent_of(scratch):  # another file system than that of the index
            seeing, there = stack.enter_context(scratch_in(engine, home))
        mended += mend_queues(seeing, queues, some, there)
    return mended


def _publish(engine: Engine, changes: Sequence[Change], report: RepairReport) -> None:
    name, written = run_one(engine, _look_at_places, report.path, "make a backup")
    backup = join(report.path, name)
    with marked(engine, written) as seeing:  # an empty index/ is known by nothing else
        placed = exchange_all(seeing, Exchange(report.path, backup, tuple(changes)))
    checkpoint = join(report.path, "checkpoint")
    report.out_files = [path for path in placed if path != checkpoint]
    report.files = len(report.out_files)
    report.backup = backup


def _look_at_places(root: str) -> tuple[str, list[str]]:
    """A name for the backup, and the directories whose files are exchanged."""
    return backup_in([root]), list(filter(disk.is_directory, _written(root)))


def _written(root: str) -> list[str]:
    return [join(root, name) for name in ("index", *kinds.QUEUES)]
