"""Text for people. A file, a key or a name may hold anything, a terminal's control codes too."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from datetime import datetime, timedelta

from mqindex._words import plural

_EPOCH = datetime(1970, 1, 1)


def printable(text: object) -> str:
    r"""The text in one line, without control codes of terminals.

    >>> printable("a\x1b[2J\n\udc80é")
    'a\\x1b[2J\\n\\udc80é'
    """
    string = str(text)
    if string.isprintable():
        return string
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in string)


def shell_command(words: Iterable[str]) -> str:
    r"""A command for the reader's shell, to be copied as it is shown, whatever a path holds.

    >>> shell_command(["mqindex", "verify", "my store"]), shell_command(["cd", "a\nb"])
    ("mqindex verify 'my store'", "cd $'a\\012b'")
    """
    return " ".join(shlex.quote(word) if word.isprintable() else _in_bytes(word) for word in words)


def _in_bytes(word: str) -> str:
    shown = (chr(one) if 0x20 <= one < 0x7F and one not in b"'\\" else f"\\{one:03o}" for one in os.fsencode(word))
    return f"$'{''.join(shown)}'"


def deleted_meanwhile(path: str) -> str:
    """What a reader left out because a broker's retention was before it."""
    return f"{path} was deleted by a broker before it was read"


def iso(ms: int) -> str:
    """A time in ms since the epoch as people write it, in UTC; absurd ones get words.

    >>> iso(1700000000123), iso(2**62)
    ('2023-11-14T22:13:20.123Z', 'beyond the calendar')
    """
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") + "Z"
    except OverflowError:
        return "beyond the calendar"


def size(count: int) -> str:
    """A number of bytes, exact and in the unit that people think in.

    >>> size(420000040), size(40)
    ('420000040 bytes (400.5 MiB)', '40 bytes')
    """
    return f"{count} bytes ({about_size(count)})" if abs(count) >= 1024 else plural(count, "byte")


def about_size(count: float) -> str:
    """A number of bytes in the unit that people think in.

    >>> about_size(420_000_040), about_size(40), about_size(2**30 - 1)
    ('400.5 MiB', '40 bytes', '1.0 GiB')
    """
    scaled, unit = float(count), ""
    for unit in ("", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if round(abs(scaled), 1) < 1024 or unit == "PiB":
            break
        scaled /= 1024
    return f"{scaled:.1f} {unit}" if unit else plural(round(count), "byte")
