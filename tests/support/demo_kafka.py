"""The demo's Kafka part: a partition without its time indexes, to which no broker says a word."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from mqindex import kafka
from tests.support.demo_steps import heading, show
from tests.support.golden_kafka import PartitionCase

__all__ = ["lost_time_indexes"]

INTERVAL = "--index-interval-bytes 1000"  # a topic setting, which no file of the partition tells


def lost_time_indexes() -> None:
    """The broker's answers before and after the loss are on record; mqindex gives both, and mends the partition."""
    lost = PartitionCase("410-plain-mono")
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(lost.closed(Path(scratch)), "orders-0")
    for log in Path("orders-0").glob("*.log"):
        os.utime(log)  # copied today, as after a restore: without a time index this date is a segment's time
    said = lost.truth["broker"]
    before = answered(said["answers"]["read_uncommitted"]["offsetsForTimes"])
    after = answered(said["answers_after_timeindex_deleted"]["offsetsForTimes"])
    wrong = sum(before[ms] != after[ms] for ms in before)

    heading(f"7. A Kafka 4.1.0 broker lost three .timeindex files: without a word, {wrong} of {len(before)} "
            "offsets-for-times are wrong")  # fmt: skip
    show("rm orders-0/*.timeindex", shell=True)
    show("mqindex query orders-0 --timestamp 2023-11-14T22:13:35Z", expect=1)
    agree("without its time indexes", after)
    show(f"mqindex verify orders-0 {INTERVAL}", expect=1)
    show(f"mqindex repair orders-0 {INTERVAL}")
    show("mqindex query orders-0 --timestamp 2023-11-14T22:13:35Z --timestamp -3")
    agree("repaired", before)


def answered(rows: list[list[int | None]]) -> dict[int, int]:
    """The offset for each time; -1: none."""
    return {int(ms or 0): -1 if offset is None else offset for ms, offset, _ in rows}


def agree(words: str, said: dict[int, int]) -> None:
    """mqindex answers each question as the broker did."""
    with kafka.PartitionLog.open("orders-0") as log:
        _, offsets = log.offsets_for_timestamps(np.array(list(said), np.int64))
    assert offsets.tolist() == list(said.values()), "mqindex and the broker disagree"
    print(f"{words}: mqindex answers all {len(said)} questions as the broker did\n")
