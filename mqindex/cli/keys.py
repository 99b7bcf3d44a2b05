"""The keys of a command line: its arguments, or `-` for one a line on stdin."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from mqindex.cli.trouble import Trouble

BATCH: Final = 1 << 16  # keys of one bulk call


def key_batches(
    arguments: Sequence[str], stdin: BinaryIO | None = None, *, what: tuple[str, str] = ("key", "KEY...")
) -> Iterator[list[str]]:
    """Lists of keys, none empty, for bulk calls. Empty lines of stdin are skipped: no index holds an empty key.

    A byte order mark, with which some editors begin a file, is not part of the first key.

    `what`: the noun for one in messages, and its form on the command line.

    >>> list(key_batches(["a", "b"]))
    [['a', 'b']]
    """
    noun, flag = what
    if "-" not in arguments:
        yield [argument_text(key, f"{noun} {number}") for number, key in enumerate(arguments, 1)]
        return
    if len(arguments) > 1:
        raise Trouble(f"{noun}s: expected either {flag} or - ({noun}s from stdin), got both")
    source = stdin or sys.stdin.buffer
    if not source.readable():  # see `mqindex.cli.main`
        raise Trouble(f"standard input is closed: expected {noun}s, one a line; </dev/null has none")
    lines = enumerate(source, 1)
    while chunk := list(itertools.islice(lines, BATCH)):
        keys = [_text(line, number, noun) for number, line in chunk]
        if keys := [key for key in keys if key]:
            yield keys


def _text(line: bytes, number: int, noun: str) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        article = "an" if noun[0] in "aeiou" else "a"
        raise Trouble(f"stdin, line {number}: expected {article} {noun} in UTF-8, got {line[:40]!r}") from None


def argument_text(argument: str, which: str) -> str:
    """An argument of the command line as text; bytes that the locale does not know, as `LC_ALL=C`, are UTF-8."""
    if not any("\ud800" <= unit <= "\udfff" for unit in argument):
        return argument
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        raise Trouble(f"{which}: expected UTF-8, got {argument!r}") from None
