"""Verify: does the index of a store say what its commit log says? Nothing is written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from mqindex.engines import Engine, LocalEngine
from mqindex.report import Report
from mqindex.rocketmq.diagnosis import diagnose
from mqindex.rocketmq.options import Config, store_options
from mqindex.rocketmq.pipeline import SPLIT_SIZE
from mqindex.rocketmq.rebuild import one, start_report
from mqindex.rocketmq.repair import planned_actions
from mqindex.rocketmq.survey import survey

__all__ = ["verify"]


def verify(
    store: str | os.PathLike[str],
    *,
    deep: bool = False,
    config: Config | None = None,
    commitlog: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    broker_version: str | None = None,
    engine: Engine | None = None,
) -> Report:
    """Check every index file of a store, and that together they hold every entry of the log.

    Each file: length, header, slots, chains, and up to 100 entries at both ends hashed again from the log. Between
    the files: whatever no file covers is read and counted. `deep` compares every entry with the log.

    Parameters
    ----------
    store : path of a store's root; also of one that a broker is writing.
    config, commitlog, hash_slot_num, index_num, broker_version : store options, as for `rebuild`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    Report
        `ok` is False when a finding is an error; `actions` say what `repair` would do.

    Notes
    -----
    Source of the rules: RocketMQ 4.9.3 `IndexFile`, `IndexService`, `CommitLog.checkMessageAndReturnSize`.
    """
    started = time.perf_counter()
    engine = engine or LocalEngine()
    options = store_options(
        store,
        config=config,
        commitlog=commitlog,
        hash_slot_num=hash_slot_num,
        index_num=index_num,
        broker_version=broker_version,
    )
    found = one(engine, survey, options, "survey")
    report = start_report(Report(options.root), found)
    diagnosis = diagnose(engine, found, deep=deep, split_size=SPLIT_SIZE)
    report.findings = list(diagnosis.findings)
    report.actions = planned_actions(diagnosis)
    report.files = len(found.index_files)
    report.entries = sum(one_file.entries for one_file in diagnosis.good)
    report.messages = diagnosis.messages
    report.seconds = time.perf_counter() - started
    return report
