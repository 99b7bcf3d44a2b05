"""The keys of a command line: its arguments, or `-` for one a line on stdin."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from mqindex.cli.trouble import Trouble

__all__ = ["BATCH", "key_batches"]

BATCH: Final = 1 << 16  # keys of one bulk call


def key_batches(
    arguments: Sequence[str], stdin: BinaryIO | None = None, *, what: tuple[str, str] = ("key", "KEY...")
) -> Iterator[list[str]]:
    """Lists of keys, none empty, for bulk calls. Empty lines of stdin are skipped: no index holds an empty key.

    `what`: how messages call one, and how the command line calls them.

    >>> list(key_batches(["a", "b"]))
    [['a', 'b']]
    """
    noun, flag = what
    if "-" not in arguments:
        for number, key in enumerate(arguments, 1):
            _require_text(key, f"{noun} {number}")
        yield list(arguments)
        return
    if len(arguments) > 1:
        raise Trouble(f"{noun}s: expected either {flag} or - ({noun}s from stdin), got both")
    lines = enumerate(stdin or sys.stdin.buffer, 1)
    while chunk := list(itertools.islice(lines, BATCH)):
        keys = [_text(line, number, noun) for number, line in chunk]
        if keys := [key for key in keys if key]:
            yield keys


def _text(line: bytes, number: int, noun: str) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        article = "an" if noun[0] in "aeiou" else "a"
        raise Trouble(f"stdin, line {number}: expected {article} {noun} in UTF-8, got {line[:40]!r}") from None


def _require_text(key: str, which: str) -> None:
    if any("\ud800" <= unit <= "\udfff" for unit in key):  # bytes of the command line that are no UTF-8
        raise Trouble(f"{which}: expected UTF-8, got {key!r}")
