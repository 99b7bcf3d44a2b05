"""Large commit logs, fast: every record has one size, so that a block of them is a matrix whose columns are fields.

Only what differs from message to message is written per message, as strided NumPy views over one tiled block; the body
is the same everywhere, so its CRC is computed once. Keys are functions of the message's number: a bench can ask for
the key of message *i* without reading the log.

    python -m tests.support.big_log DIR --gib 4 --body 1024
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tests.support.log_writer import LogMessage, frame

__all__ = ["BigLog", "Block", "write_big_log"]

FIRST_TIME = 1_700_000_000_000
MESSAGES_PER_MS = 4
BLOCK_BYTES = 4 << 20
UNIQ_KEY_HEAD = b"C0A8010A1F902B193F2D"  # client's address, process and class loader; then time and a counter
TOPIC_DIGITS = 8
DIGITS = np.frombuffer("".join(f"{value:04X}" for value in range(1 << 16)).encode(), "S4")


@dataclass(frozen=True)
class BigLog:
    """What `write_big_log` writes below `root`, as functions of the message's number (from 0)."""

    root: Path
    messages: int
    body_size: int = 1024
    mapped_file_size: int = 1 << 30
    keys_per_message: int = 1
    topic: str = "TopicTest"
    seed: int = 0
    tags: int = 1
    topics: int = 1
    queues: int = 1

    @cached_property
    def template(self) -> bytes:
        """One record with holes: its variable fields are zeros, or the digit 0 in keys."""
        blank_keys = " ".join(["K" + "0" * 16] * self.keys_per_message)
        body = bytes(np.random.default_rng(self.seed).integers(32, 127, self.body_size, np.uint8))
        return frame(
            LogMessage(
                self.topic + "0" * TOPIC_DIGITS * (self.topics > 1),
                body=body,
                properties=[("KEYS", blank_keys)] * bool(blank_keys)
                + [("UNIQ_KEY", (UNIQ_KEY_HEAD + b"0" * 12).decode()), ("WAIT", "true"), ("TAGS", "TagA")],
            ),
            0,
        )

    @property
    def messages_per_file(self) -> int:
        """A record and the 8 bytes of a blank must fit."""
        return (self.mapped_file_size - 8) // len(self.template)

    @property
    def files(self) -> int:
        return -(-self.messages // self.messages_per_file)

    @property
    def max_phy_offset(self) -> int:
        """Where the log ends."""
        return int(self.phy_offsets([self.messages - 1])[0]) + len(self.template) if self.messages else 0

    def phy_offsets(self, numbers: ArrayLike) -> NDArray[np.int64]:
        file, place = np.divmod(np.asarray(numbers, np.int64), self.messages_per_file)
        offsets: NDArray[np.int64] = file * self.mapped_file_size + place * len(self.template)
        return offsets

    def store_timestamps(self, numbers: ArrayLike) -> NDArray[np.int64]:
        times: NDArray[np.int64] = FIRST_TIME + np.asarray(numbers, np.int64) // MESSAGES_PER_MS
        return times

    def uniq_keys(self, numbers: ArrayLike) -> NDArray[np.bytes_]:
        """32 hex digits, as a client of the broker makes them."""
        rows = np.empty((np.size(numbers), 32), np.uint8)
        rows[:, :20] = np.frombuffer(UNIQ_KEY_HEAD, np.uint8)
        rows[:, 20:] = self._uniq_key_tails(np.asarray(numbers, np.int64))
        return rows.view("S32")[:, 0]

    def keys(self, numbers: ArrayLike, which: int = 0) -> NDArray[np.bytes_]:
        """The `which`-th of KEYS: `K` and 16 hex digits that follow no order."""
        rows = np.empty((np.size(numbers), 17), np.uint8)
        rows[:, 0] = ord("K")
        rows[:, 1:] = self._key_tails(np.asarray(numbers, np.int64), which)
        return rows.view("S17")[:, 0]

    def _uniq_key_tails(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        return _hex(numbers // MESSAGES_PER_MS << 16 | numbers & 0xFFFF, 3)

    def _key_tails(self, numbers: NDArray[np.int64], which: int) -> NDArray[np.uint8]:
        return _hex(_mix(numbers.astype(np.uint64) * np.uint64(max(self.keys_per_message, 1)) + np.uint64(which),
                         self.seed), 4)  # fmt: skip


def write_big_log(
    directory: str | os.PathLike[str],
    *,
    messages: int | None = None,
    total_bytes: int | None = None,
    body_size: int = 1024,
    mapped_file_size: int = 1 << 30,
    keys_per_message: int = 1,
    topic: str = "TopicTest",
    seed: int = 0,
    tags: int = 1,
    topics: int = 1,
    queues: int = 1,
) -> BigLog:
    """Writes `<directory>/commitlog` with that many messages, or with the most that `total_bytes` of log can hold.

    Their `topics`, in each of these their `queues`, and their `tags` TagA, TagB and so on come in turn. Of several
    topics each has eight digits behind its name.
    """
    options: dict[str, Any] = {
        "body_size": body_size, "mapped_file_size": mapped_file_size, "keys_per_message": keys_per_message,
        "topic": topic, "seed": seed, "tags": tags, "topics": topics, "queues": queues,
    }  # fmt: skip
    if (messages is None) == (total_bytes is None):
        raise TypeError("either messages or total_bytes")
    log = BigLog(Path(directory), messages or 0, **options)
    if total_bytes is not None:
        whole, rest = divmod(total_bytes, mapped_file_size)
        fit = whole * log.messages_per_file + min(rest // len(log.template), log.messages_per_file)
        log = BigLog(Path(directory), fit, **options)
    (log.root / "commitlog").mkdir(parents=True)
    block = Block(log)
    for number in range(log.files):
        _write_file(log, number, block)
    return log


def _write_file(log: BigLog, number: int, block: Block) -> None:
    first = number * log.messages_per_file
    stop = min(first + log.messages_per_file, log.messages)
    with open(log.root / "commitlog" / f"{number * log.mapped_file_size:020d}", "wb", buffering=0) as file:
        for start in range(first, stop, block.rows):
            file.write(block.fill(start, min(start + block.rows, stop)))
        if number + 1 < log.files:
            free = log.mapped_file_size - file.tell()
            file.write(free.to_bytes(4, "big") + bytes.fromhex("cbd43194"))
        file.truncate(log.mapped_file_size)


class Block:
    """A buffer of whole records, and views on the fields that differ between them."""

    def __init__(self, log: BigLog) -> None:
        size = len(log.template)
        self.log, self.rows = log, max(1, min(BLOCK_BYTES // size, log.messages_per_file))
        self.bytes = np.tile(np.frombuffer(log.template, np.uint8), self.rows).reshape(self.rows, size)
        self.queue_offset, self.phy_offset, self.born, self.store = (self._int64(at) for at in (20, 28, 40, 56))
        uniq = log.template.index(UNIQ_KEY_HEAD) + len(UNIQ_KEY_HEAD)
        self.uniq_key = self.bytes[:, uniq : uniq + 12]
        keys = log.template.index(b"KEYS\x01") + 6 if log.keys_per_message else 0
        topic = 84 + 4 + log.body_size + 1 + len(log.topic)
        self.topic = self.bytes[:, topic : topic + TOPIC_DIGITS] if log.topics > 1 else None
        self.queue_id = np.ndarray(self.rows, ">i4", self.bytes.data, 12, self.bytes.strides[:1])
        self.tag = self.bytes[:, log.template.index(b"TAGS\x01Tag") + 8]
        self.keys = [self.bytes[:, keys + 18 * i : keys + 18 * i + 16] for i in range(log.keys_per_message)]

    def _int64(self, at: int) -> NDArray[np.int64]:
        return np.ndarray(self.rows, ">i8", self.bytes.data, at, self.bytes.strides[:1])

    def fill(self, start: int, stop: int) -> memoryview:
        """The bytes of messages start to stop, all in one file; valid until the next call."""
        log, count, numbers = self.log, stop - start, np.arange(start, stop)
        rounds, self.queue_id[:count] = np.divmod(numbers // log.topics, log.queues)
        self.queue_offset[:count] = rounds
        if self.topic is not None:
            self.topic[:count] = _hex(numbers % log.topics, TOPIC_DIGITS // 4)
        self.phy_offset[:count] = log.phy_offsets(numbers)
        self.store[:count] = log.store_timestamps(numbers)
        self.born[:count] = self.store[:count] - 2
        self.uniq_key[:count] = log._uniq_key_tails(numbers)
        self.tag[:count] = ord("A") + numbers % log.tags
        for which, columns in enumerate(self.keys):
            columns[:count] = log._key_tails(numbers, which)
        return self.bytes[:count].data.cast("B")


def _hex(values: NDArray[Any], groups: int) -> NDArray[np.uint8]:
    """Upper-case digits of the low 4 × groups bits, shape (n, 4 × groups)."""
    wide = values.astype(np.uint64)
    columns = [DIGITS[(wide >> np.uint64(16 * place) & np.uint64(0xFFFF))] for place in reversed(range(groups))]
    return np.stack(columns, axis=1).view(np.uint8)


def _mix(values: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A bijection of 64 bits that leaves no order (splitmix64)."""
    mixed = values + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    result: NDArray[np.uint64] = mixed ^ mixed >> np.uint64(31)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a large RocketMQ commit log into DIR/commitlog.")
    parser.add_argument("directory", metavar="DIR")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--gib", type=float, help="size of the log")
    size.add_argument("--messages", type=int, help="or its number of messages")
    parser.add_argument("--body", type=int, default=1024, help="bytes of each body")
    parser.add_argument("--keys", type=int, default=1, help="KEYS of each message, beside its UNIQ_KEY")
    parser.add_argument("--file-size", type=int, default=1 << 30, help="mappedFileSizeCommitLog")
    parser.add_argument("--topic", default="TopicTest")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    began = time.perf_counter()
    log = write_big_log(
        chosen.directory,
        messages=chosen.messages,
        total_bytes=None if chosen.gib is None else int(chosen.gib * (1 << 30)),
        body_size=chosen.body,
        mapped_file_size=chosen.file_size,
        keys_per_message=chosen.keys,
        topic=chosen.topic,
        seed=chosen.seed,
    )
    seconds = time.perf_counter() - began
    print(f"{log.messages} messages, {log.files} files, {log.max_phy_offset} bytes in {seconds:.1f} s")


if __name__ == "__main__":
    main()
