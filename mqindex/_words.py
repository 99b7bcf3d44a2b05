"""Words of messages that depend on a number."""

from __future__ import annotations


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count and its noun; `nouns`: the plural, where it is not a regular one.

    >>> plural(1, "entry"), plural(0, "file"), plural(2, "index entry"), plural(3, "batch"), plural(1, "is", "are")
    ('1 entry', '0 files', '2 index entries', '3 batches', '1 is')
    """
    return f"{count} {noun if count == 1 else nouns or _many(noun)}"


def _many(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "x", "s")) else f"{noun}s"
