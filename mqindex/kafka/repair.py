"""Repair: the indexes of partitions brought back in place. What is right stays untouched, and so does every log."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Unpack

from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.tasks import held, require_seen, run_one
from mqindex.errors import MQIndexError
from mqindex.files.backups.exchange import refuse_linked
from mqindex.files.paths import absolute
from mqindex.files.places.place import given_path, require_here
from mqindex.files.rights import as_owner_of
from mqindex.kafka import catalogue
from mqindex.kafka.checks.diagnosis import Diagnosis, diagnose
from mqindex.kafka.checks.repair_plan import planned_actions
from mqindex.kafka.checks.start.start_verdict import verdict
from mqindex.kafka.directories.log_dir import linked_partitions, log_dir_of
from mqindex.kafka.directories.partition_files import hold_writers
from mqindex.kafka.directories.survey import Order, Survey, partitions_at, start_report, survey
from mqindex.kafka.mending.index_repair import repair_indexes
from mqindex.kafka.options import PartitionArguments, partition_options
from mqindex.report import Finding, RepairReport, left_or_repaired
from mqindex.undo import take_back


@with_options_of(partition_options)
def repair(
    directory: str | os.PathLike[str],
    *,
    deep: bool = False,
    dry_run: bool = False,
    cut_damaged: bool = False,
    engine: Engine | None = None,
    **given: Unpack[PartitionArguments],
) -> RepairReport:
    """Write anew what is wrong with the indexes of a stopped broker's partition, or of its whole log dir, in place.

    Index files that mislead nobody stay untouched, also where a rebuild would write others. A lost, empty or wrong
    `.index`, `.timeindex` or `.txnindex` is written as a broker's recovery writes it; the other indexes of its segment
    stay. What no broker brings back is brought back too: a `.timeindex` alone, and a transaction index after a clean
    stop. A log is never changed: a torn tail stays a finding, and the broker cuts it. Where it does so only for want of
    the `.index`, that stays missing, or goes to the backup where it is wrong. Good batches behind damage have entries,
    so that a broker serves them; it gives them up only with `cut_damaged`.

    Parameters
    ----------
    directory : path of a partition or of a log dir.
    deep : as for `verify`.
    dry_run : only report it, write nothing.
    cut_damaged : also move the right `.index` of each log to the backup that is bad somewhere, and that no start cuts:
        without it a broker from 2.3 on cuts the log at the first bad batch when it starts, so that consumers get past
        it. The good batches behind are given up, in this segment: `actions` say how many, and how many records.
    kafka_version, index_interval_bytes, max_index_size, check_crc : partition options, as for `rebuild`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    RepairReport
        `findings`: those that `verify` makes after it (with `dry_run`: before it), and as an info with the hint
        "repaired" those that are gone; `actions` what was done. Where it changed files, it looks at them again.
        `backup`: where replaced files are; of a log dir a pattern with `*` for the partition.

    Raises
    ------
    StoreInUseError : a broker holds the log dir, or an index is open for writing.
    FileStateError : a partition in the log dir is a link; or a worker of a cluster does not see the files as others do.
    RebuildError : a worker died; nothing was published, or, if it died while files got their places, each is the old or
        the new one.

    Notes
    -----
    Replaced files go to `mqindex-backup-<UTC>/` in the partition's own directory, and new ones are built in a
    `.mqindex-<id>/` there: a broker from 0.11 on looks only at files in a partition, and deletes the directories with
    it. (In a log dir, one whose name is no partition's keeps the broker from starting.)
    Interrupted at any point, every file is the old or the new one, and a second run finishes.
    Source: Kafka 4.1.0 `LogLoader`, `LogManager.loadLogs`, `LogSegment.recover`.

    Examples
    --------
    >>> report = repair("orders-0", index_interval_bytes=1000)
    >>> report.ok, report.files, report.segments
    (True, 3, 3)
    """
    started = time.perf_counter()
    engine = chosen_engine(engine)
    options = partition_options(**given)
    root = absolute(given_path("directory", directory, given.get("storage_options")))
    require_here(root)
    with as_owner_of(root, reading=True):
        engine = require_seen(engine, [root])
        if not dry_run:
            refuse_linked(linked_partitions(root))
        found = run_one(engine, survey, Order(root, options), "look at the files")
        report = start_report(RepairReport(root, dry_run=dry_run), found)
        if dry_run:
            diagnosis = _diagnose(engine, found, report, deep=deep, cut_damaged=cut_damaged)
        else:
            homes = tuple(partition.path for partition in found.partitions)
            with held(engine, partial(hold_writers, homes), found.log_dir):
                found = run_one(engine, survey, Order(root, options), "look again")  # after a repair before this one
                diagnosis = _diagnose(engine, found, report, deep=deep, cut_damaged=cut_damaged)
                repair_indexes(engine, diagnosis, report)
            if report.backup is not None:
                report.findings = _left_or_repaired(engine, Order(root, options), report.findings, deep)
    report.batches = sum(segment.log.batches for segment in diagnosis.segments())
    report.seconds = time.perf_counter() - started
    return report


def _diagnose(engine: Engine, found: Survey, report: RepairReport, *, deep: bool, cut_damaged: bool) -> Diagnosis:
    """Put what `verify` finds into the report, also what prevents a broker's start."""
    diagnosis = diagnose(engine, found, deep=deep, cut_damaged=cut_damaged)
    report.findings, report.actions = _findings(engine, diagnosis), planned_actions(diagnosis)
    return diagnosis


def _findings(engine: Engine, diagnosis: Diagnosis) -> list[Finding]:
    return diagnosis.findings() + verdict(engine, diagnosis)[1]


def _left_or_repaired(engine: Engine, order: Order, before: Sequence[Finding], deep: bool) -> list[Finding]:
    """What is left to find, and, as infos, what is not found any more."""
    try:
        found = run_one(engine, survey, order, "look at what was done")
        after = _findings(engine, diagnose(engine, found, deep=deep))
    except (MQIndexError, OSError):  # all is done; what is left is not known, so nothing is called repaired
        return list(before)
    return left_or_repaired(before, after)


def undo_repair(
    directory: str | os.PathLike[str], backup: str | os.PathLike[str], *, dry_run: bool = False
) -> RepairReport:
    """Take a repair of a stopped broker's partition or log dir back: its files are again what they were before.

    What is in their places now goes to a backup of its own, so that this can be taken back too. Of several repairs the
    last one is taken back first. The files of the backup are first compared with the checksums in its record.

    Parameters
    ----------
    directory : path of a partition or of a log dir.
    backup : `RepairReport.backup`; or a path, of one partition; or a name, of all that have it. Gone afterwards, as its
        files are in place again.
    dry_run : only check the backup and say what would be done; write nothing.

    Returns
    -------
    RepairReport
        `actions` are what was done, `out_files` what was put back, `backup` the new one, if anything went there.
        `findings`: a warning for each file that a broker wrote to since; what it wrote is in the new backup only.

    Raises
    ------
    StoreInUseError : a broker holds the log dir, or an index is open for writing.
    FileNotFoundError : no such backup.
    FileStateError : no backup, one that does not say what the repair did, one of whose files is not what was put
        there, or one with a newer one that is to be put back first.

    Notes
    -----
    Interrupted at any point, every file is the old or the new one, and a second call finishes.
    Source: Kafka 4.1.0 `LogLoader`, which looks at no directory inside a partition.

    Examples
    --------
    >>> os.truncate("orders-0/00000000000000000000.index", 0)
    >>> report = repair("orders-0", index_interval_bytes=1000)
    >>> report.ok, undo_repair("orders-0", report.backup).actions
    (True, ['put 00000000000000000000.index back'])
    """
    root = absolute(given_path("directory", directory))
    require_here(root)
    homes = [one.path for one in partitions_at(root)]
    refuse_linked(linked_partitions(root))
    hold = partial(hold_writers, homes, log_dir_of(root))
    return take_back(root, backup, homes, hold, catalogue.WRITTEN_SINCE, dry_run=dry_run)
