"""Index files without their commit log: checked against themselves."""

from __future__ import annotations

import time

from mqindex.engines import Engine
from mqindex.errors import MQIndexError
from mqindex.files import disk
from mqindex.files.places.place import require_answer
from mqindex.report import Finding, Report, Value
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.check import structural_finding
from mqindex.rocketmq.index.compare import next_entry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.index.opening import geometry_of
from mqindex.rocketmq.kinds import index_paths
from mqindex.rocketmq.options import StoreArguments

_Task = tuple[str, int, int]
_Result = tuple[list[Finding], int]


def verify_structure(path: str, options: StoreArguments, *, engine: Engine) -> Report:
    """Check one index file, or each of a directory: length, header, slots, chains."""
    started = time.perf_counter()
    report = Report(path)
    slots, entries, source = geometry_of(path, options)
    paths = index_paths(path) if disk.is_directory(path) else [path]
    if paths and slots is not None and entries is not None:  # else the first file came since
        report.settings = {"geometry": Value((slots, entries), source)}
        tasks = [(name, slots, entries) for name in paths]
        for findings, count in engine.map(_check, tasks, name="check the index files", unit="file"):
            report.findings += findings
            report.entries += count
    report.files = len(paths)
    report.seconds = time.perf_counter() - started
    return report


def _check(task: _Task) -> _Result:
    path, slots, entries = task
    try:
        with IndexFile._open_known(path, (slots, entries)) as file:
            return [structural_finding(path, fault) for fault in file._check()], next_entry(file) - 1
    except (MQIndexError, OSError) as error:
        require_answer(error, path)
        return [catalogue.INDEX_UNREADABLE.finding(path, error=error)], 0
