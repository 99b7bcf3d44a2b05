"""Kafka partitions: rebuilt by threads and on Spark, recovered in memory, verified by the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import Any

from bench import memory
from bench.contenders.result import Result, checksum, repeat
from mqindex.engines import Engine, LocalEngine
from mqindex.kafka import LogSegment
from mqindex.kafka import rebuild as rebuild_partition
from mqindex.report import RebuildReport

__all__ = ["rebuild", "recover", "spark_rebuild", "verify"]


def rebuild(*, partition: str, workers: int, check_crc: bool, warm: int, scratch: str, **spec: Any) -> Result:
    """A whole `rebuild` until its rename. Waiting for the disk is a measure of its own."""
    return _rebuild(partition, LocalEngine(workers=workers), partition, check_crc, warm, scratch, spec)


def spark_rebuild(*, partition: str, small: str, check_crc: bool, warm: int, scratch: str, **spec: Any) -> Result:
    """The same with a `SparkEngine`; the session is warmed on a small partition first."""
    from bench.contenders.spark_jobs import session
    from mqindex.spark import SparkEngine

    return _rebuild(partition, SparkEngine(session(scratch)), small, check_crc, warm, scratch, spec)


def recover(*, log: str, check_crc: bool, scratch: str, **spec: Any) -> Result:
    """`LogSegment.recover`: both indexes in memory, the log mapped anew in each round."""
    result = Result()
    for keep in repeat(**spec):
        start = time.perf_counter()
        with LogSegment.open(log) as segment:
            made = segment.recover(check_crc=check_crc)
            seconds = time.perf_counter() - start
            if keep:
                result.add("recover", seconds, segment.size)
        if made.fault is not None:
            raise RuntimeError(f"the log ends: {made.fault}")
    paths = []
    for suffix, content in (("index", made.offset_index), ("timeindex", made.time_index)):
        paths.append(os.path.join(scratch, suffix))
        with open(paths[-1], "wb") as file:
            file.write(content)
    result.answer(files=checksum(paths))
    return result


def verify(*, partition: str, scratch: str, **spec: Any) -> Result:
    """`mqindex verify` of a partition, a whole process each time."""
    result = Result()
    command = [sys.executable, "-m", "mqindex", "verify", partition]
    for keep in repeat(**spec):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode:
            raise RuntimeError(f"findings: {done.stdout}{done.stderr}")
        if keep:
            result.add("both", seconds, 1)
    result.answer(findings=0)
    return result


def _rebuild(
    partition: str, engine: Engine, small: str, check_crc: bool, warm: int, scratch: str, spec: dict[str, Any]
) -> Result:
    result, out, checked = Result(), os.path.join(scratch, "out"), ""
    for keep in repeat(**spec):
        memory.warm(warm)
        start = time.perf_counter()
        report = rebuild_partition(partition if keep else small, out, check_crc=check_crc, engine=engine)
        seconds = time.perf_counter() - start
        if not report.ok:
            raise RuntimeError(f"findings: {report.findings}")
        if keep:
            _add(result, report, seconds)
            checked = checked or checksum(sorted(report.out_files))
        shutil.rmtree(out)
    result.answer(files=checked)
    return result


def _add(result: Result, report: RebuildReport, seconds: float) -> None:
    result.add("rebuild", seconds - report.fsync_seconds, report.bytes)
    result.add("fsync", report.fsync_seconds, report.bytes)
    result.add("with_fsync", seconds, report.bytes)
