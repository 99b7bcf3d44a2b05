"""One store grown along one axis: made at a size, rebuilt, verified and looked at; then made larger.

With as many workers as somebody gets who asks for none; `mqindex info` as a process of its own. Beside a rebuild and a
verify the bare calls of the system for the same files: what grows with them is the machine's.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.contenders.result import Result, repeat
from mqindex import kafka, rocketmq
from mqindex.report import RebuildReport, Report
from tests.support.big_log import write_big_log
from tests.support.big_segments import BIG_BATCH, write_big_segment

__all__ = ["kafka_axis", "rocketmq_axis"]

STEPS = {"once": 1, "twice": 2, "eight": 8}
LOG_FILE = 64 << 20
SMALL_LOG_FILE = 32 << 10
SMALL_GEOMETRY = {"hash_slot_num": 50, "index_num": 100}
GEOMETRY = {"hash_slot_num": 250_000, "index_num": 1_000_000}

INFO = [sys.executable, "-m", "mqindex", "info"]

Verify = Callable[[str], Report]
Rebuild = Callable[[str, str], RebuildReport]


def rocketmq_axis(*, axis: str, size: int, messages: int, scratch: str, **spec: Any) -> Result:
    """`size` of what `axis` says in a store of `messages`, which grow with all axes but the keys of each."""
    geometry = SMALL_GEOMETRY if axis == "index files" else GEOMETRY

    def make(root: str, step: int) -> None:
        log = {
            "topics": {"topics": size * step},
            "queues": {"queues": size * step},
            "keys a message": {"keys_per_message": size * step},
            "log files": {"mapped_file_size": SMALL_LOG_FILE},
        }
        count = messages * (1 if axis == "keys a message" else step)
        options: dict[str, Any] = {"mapped_file_size": LOG_FILE, **log.get(axis, {})}
        write_big_log(root, messages=count, body_size=0, **options)

    def verify(root: str) -> Report:
        return rocketmq.verify(root, deep=True, broker_version="4.9.3", **geometry)

    def rebuild(root: str, out: str) -> RebuildReport:
        return rocketmq.rebuild(root, out, broker_version="4.9.3", **geometry)

    numbers = ["--hash-slot-num", str(geometry["hash_slot_num"]), "--index-num", str(geometry["index_num"])]
    return _grown(make, verify, rebuild, numbers, scratch, spec)


def kafka_axis(*, axis: str, size: int, scratch: str, **spec: Any) -> Result:
    """So many partitions of one segment, or one partition of so many segments; two batches each."""

    def make(root: str, step: int) -> None:
        at, first = 0, os.path.join(root, "topic-0")
        for _ in range(size * step if axis == "segments" else 1):
            at = write_big_segment(first, at, 2 * BIG_BATCH).next_offset
        for number in range(1, size * step if axis == "partitions" else 1):
            other = os.path.join(root, f"topic-{number}")
            os.mkdir(other)
            for name in os.listdir(first):
                os.link(os.path.join(first, name), os.path.join(other, name))

    def verify(root: str) -> Report:
        return kafka.verify(root, deep=True)

    def rebuild(root: str, out: str) -> RebuildReport:
        return kafka.rebuild(root, out)

    return _grown(make, verify, rebuild, [], scratch, spec)


def _grown(
    make: Callable[[str, int], None],
    verify: Verify,
    rebuild: Rebuild,
    options: list[str],
    scratch: str,
    spec: dict[str, Any],
) -> Result:
    result = Result()
    roots = {name: os.path.join(scratch, name) for name in STEPS}
    for name, root in roots.items():
        make(root, STEPS[name])
    number, entries = 0, {name: [0, 0] for name in STEPS}
    # The sizes take turns: a machine that is slower for a while is so for all of them.
    for number, keep in enumerate(repeat(**spec)):
        for name, root in roots.items():
            start = time.perf_counter()
            built = rebuild(root, f"{root}-{number}")
            if keep:
                result.add(f"rebuild_{name}", time.perf_counter() - start, 1)
            entries[name][0] = built.entries
            files = _files(f"{root}-{number}")
            with result.timed(f"make_{name}", 1, keep=keep):
                _make_bare(f"{root}-bare-{number}", files)
    for root in roots.values():
        _move_into(root, f"{root}-{number}")
    for keep in repeat(**spec):
        for name, root in roots.items():
            start = time.perf_counter()
            report = verify(root)
            if keep:
                result.add(f"verify_{name}", time.perf_counter() - start, 1)
            if not report.ok:
                raise RuntimeError(f"findings: {report.findings[:3]}")
            entries[name][1] = report.entries
            files = _files(root)
            with result.timed(f"look_{name}", 1, keep=keep):
                _look_bare(root, files)
    for keep in repeat(**spec):
        for name, root in roots.items():
            with result.timed(f"info_{name}", 1, keep=keep):
                subprocess.run([*INFO, root, *options], check=True, stdout=subprocess.DEVNULL)
    result.answer(**entries)
    return result


def _files(root: str) -> dict[str, dict[str, int]]:
    """The files of each directory below, and their lengths."""
    return {
        os.path.relpath(directory, root): {name: os.path.getsize(os.path.join(directory, name)) for name in names}
        for directory, _, names in os.walk(root)
    }


def _make_bare(root: str, files: dict[str, dict[str, int]]) -> None:
    """The system's calls without which no rebuild can be: directories and files of these lengths, a byte in each."""
    for directory, lengths in files.items():
        os.makedirs(os.path.join(root, directory), exist_ok=True)
        for name, length in lengths.items():
            fd = os.open(os.path.join(root, directory, name), os.O_RDWR | os.O_CREAT)
            os.ftruncate(fd, length)
            os.pwrite(fd, b"x", 0)
            os.close(fd)


def _look_bare(root: str, files: dict[str, dict[str, int]]) -> None:
    """Those without which no verify can be: each file mapped, and a byte of it read."""
    for directory, lengths in files.items():
        for name, length in lengths.items():
            fd = os.open(os.path.join(root, directory, name), os.O_RDONLY)
            if length:
                with mmap.mmap(fd, length, prot=mmap.PROT_READ) as bytes_of:
                    bytes_of[0]
            os.close(fd)


def _move_into(root: str, out: str) -> None:
    """What was built goes to its place in the store."""
    for directory, _, names in os.walk(out):
        target = os.path.join(root, os.path.relpath(directory, out))
        os.makedirs(target, exist_ok=True)
        for name in names:
            os.rename(os.path.join(directory, name), os.path.join(target, name))
