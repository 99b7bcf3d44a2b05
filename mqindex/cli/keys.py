"""The keys of a command line: its arguments, or `-` for one a line on stdin."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from mqindex.cli.trouble import Trouble

__all__ = ["BATCH", "key_batches"]

BATCH: Final = 1 << 16  # keys of one bulk call


def key_batches(arguments: Sequence[str], stdin: BinaryIO | None = None) -> Iterator[list[str]]:
    """Lists of keys, none empty, for bulk calls. Empty lines of stdin are skipped: no index holds an empty key.

    >>> list(key_batches(["a", "b"]))
    [['a', 'b']]
    """
    if "-" not in arguments:
        for number, key in enumerate(arguments, 1):
            _require_text(key, number)
        yield list(arguments)
        return
    if len(arguments) > 1:
        raise Trouble("keys: expected either KEY... or - (keys from stdin), got both")
    lines = enumerate(stdin or sys.stdin.buffer, 1)
    while chunk := list(itertools.islice(lines, BATCH)):
        keys = [_text(line, number) for number, line in chunk]
        if keys := [key for key in keys if key]:
            yield keys


def _text(line: bytes, number: int) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise Trouble(f"stdin, line {number}: expected a key in UTF-8, got {line[:40]!r}") from None


def _require_text(key: str, number: int) -> None:
    if any("\ud800" <= unit <= "\udfff" for unit in key):  # bytes of the command line that are no UTF-8
        raise Trouble(f"key {number}: expected UTF-8, got {key!r}")
