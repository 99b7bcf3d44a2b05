"""The commit log: extraction into memory, whole rebuilds."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

import numpy as np

from bench import memory
from bench.contenders.result import Result, checksum, repeat
from mqindex._native.log_extract import Extractor
from mqindex.engines import Engine, LocalEngine
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.report import RebuildReport
from mqindex.rocketmq import rebuild as rebuild_store

__all__ = ["extract", "rebuild", "rebuild_once"]

RUN_ENTRY = np.dtype([("key_hash", "<i4"), ("phy_offset", "<i8"), ("store_timestamp", "<i8")])


def extract(*, files: list[str], file_size: int, scratch: str, **spec: Any) -> Result:
    """Every index entry of a mapped log into one array in memory. No CRC, one thread."""
    result = Result()
    mapped = [(number * file_size, MappedFile.open(path)) for number, path in enumerate(files)]
    run = np.empty(sum(file.size for _, file in mapped) // 500 + 1000, RUN_ENTRY)
    run["phy_offset"] = 0  # touched: a broker's memory is there as well
    for keep in repeat(**spec):
        start = time.perf_counter()
        messages = entries = 0
        for first, file in mapped:
            extractor = Extractor(file.map, first, first, first + file.size)
            for step in extractor:
                block = np.frombuffer(step, RUN_ENTRY)
                run[entries : entries + len(block)] = block
                entries += len(block)
            messages += extractor.messages
        seconds = time.perf_counter() - start
        if keep:
            result.add("extract", seconds, messages)
    result.answer(
        messages=messages,
        entries=entries,
        hashes=int(run["key_hash"][:entries].sum(dtype=np.int64)),
        offsets=int(run["phy_offset"][:entries].sum(dtype=np.int64)),
    )
    for _, file in mapped:
        file.close()
    return result


def rebuild(*, store: str, slots: int, entries: int, workers: int, warm: int, scratch: str, **spec: Any) -> Result:
    """A whole `rebuild` until its rename. Waiting for the disk is a measure of its own."""
    result = Result()
    engine, checked = LocalEngine(workers=workers), ""
    for keep in repeat(**spec):
        memory.warm(warm)
        report, seconds = rebuild_once(store, os.path.join(scratch, "out"), slots, entries, engine)
        if keep:
            add(result, report, seconds)
        checked = checked or checksum(report.out_files)
        shutil.rmtree(os.path.join(scratch, "out"))
    result.answer(messages=report.messages, files=checked)
    return result


def rebuild_once(store: str, out: str, slots: int, entries: int, engine: Engine) -> tuple[RebuildReport, float]:
    """One rebuild: its report, and its seconds, those of fsync among them."""
    start = time.perf_counter()
    parts = ("index",)  # as the Java contenders
    report = rebuild_store(store, out, parts=parts, hash_slot_num=slots, index_num=entries, engine=engine)
    seconds = time.perf_counter() - start
    if not report.ok:
        raise RuntimeError(f"findings: {report.findings}")
    return report, seconds


def add(result: Result, report: RebuildReport, seconds: float) -> None:
    """A round of a rebuild: without fsync, and fsync alone."""
    result.add("rebuild", seconds - report.fsync_seconds, report.messages)
    result.add("fsync", report.fsync_seconds, report.messages)
    result.add("with_fsync", seconds, report.messages)
