"""Errors for a wrong directory, of a store or not: what it is, and which one was probably meant."""

from __future__ import annotations

import os
from typing import Final

from mqindex.errors import BadMagicError
from mqindex.files import disk
from mqindex.files.paths import absolute, base_name, join, parent_of, split
from mqindex.rocketmq import kinds

_COMMIT_LOG, _INDEX, _QUEUES, _TABLE = "commitlog", "index", "consumequeue", "queues"
_SHOWN = 4
_NAMES: Final = {
    "root": "a store's root",
    _COMMIT_LOG: "a commit log",
    _INDEX: "an index directory",
    _QUEUES: "a consume queue",
    _TABLE: "the directory of all consume queues",
    "topic": "a topic's directory of consume queues",
}


def refuse_other_place(directory: str | os.PathLike[str], part: str, *, has_files: bool) -> None:
    """`BadMagicError` where `directory` is another part of a store than `part`, or its root and not `has_files`.

    The same for one outside of a store that only has other files. An empty one may be a young store's.
    """
    where = absolute(directory)
    found, root = _what_it_is(where)
    if found == part or (found in ("", "root") and has_files):
        return
    if found == "":
        refuse_strangers(directory, _NAMES[part], any_number=part in (_INDEX, _TABLE))
        return
    meant = join(root, _QUEUES if part == _TABLE else part, *(("<topic>", "<queueId>") if part == _QUEUES else ()))
    if part == _QUEUES and found in ("topic", _TABLE):
        meant = join(where, *(("<topic>",) if found == _TABLE else ()), "<queueId>")
    raise BadMagicError(
        f"not {_NAMES[part]}", path=os.fspath(directory), expected=_NAMES[part], got=_NAMES[found],
        hint=f"pass {meant}" if disk.is_directory(meant.partition("/<")[0]) else "pass the directory where that is",
    )  # fmt: skip


def refuse_strangers(
    directory: str | os.PathLike[str], name: str, *, any_number: bool = False, queues: str = ""
) -> None:
    """`BadMagicError` where a directory, which should be `name`, only has entries of another kind.

    Not at a queue's place in a directory that is called `queues`: there it is one, whatever is in it.
    """
    there = kinds.strangers(os.fspath(directory), kinds.number_of if any_number else kinds.offset_of)
    place = kinds.queue_place(os.fspath(directory)) if there and queues else None
    if there and (place is None or place.queue_id is None or base_name(place.home) != queues):
        more = ", ..." if len(there) > _SHOWN else ""
        raise BadMagicError(
            f"not {name}", path=os.fspath(directory),
            expected="files named by numbers" if any_number else f"files named by {kinds.OFFSET_DIGITS} digits",
            got=f"other names: {', '.join(there[:_SHOWN])}{more}",
        )  # fmt: skip


def _what_it_is(where: str) -> tuple[str, str]:
    """What a directory is by its place in a store, and that store's root; ("", ""): its place does not show it."""
    place = kinds.queue_place(where)
    if place is not None and base_name(place.home) == _QUEUES:
        found = _TABLE if place.topic is None else "topic" if place.queue_id is None else _QUEUES
        return found, parent_of(place.home)
    if kinds.is_left_of_store(where):
        return "root", where
    root, name = split(where)
    return (name, root) if name in (_COMMIT_LOG, _INDEX) and kinds.is_left_of_store(root) else ("", "")


def store_around(where: str) -> str:
    """The root of the store that a directory is a part of; "": there seems to be none."""
    return _what_it_is(absolute(where))[1]
