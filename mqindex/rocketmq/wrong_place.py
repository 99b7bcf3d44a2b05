"""Errors for a wrong directory, of a store or not: what it is, and which one was probably meant."""

from __future__ import annotations

import os
from typing import Final

from mqindex.errors import BadMagicError
from mqindex.files import disk
from mqindex.rocketmq import store

_COMMIT_LOG, _INDEX, _QUEUES, _TABLE = "commitlog", "index", "consumequeue", "queues"
_DIGITS: Final = {_COMMIT_LOG: 20, _INDEX: None, _QUEUES: 20}
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
    where = os.path.abspath(directory)
    found, root = _what_it_is(where)
    if found == part or (found in ("", "root") and has_files):
        return
    if found == "":
        refuse_strangers(directory, _NAMES[part], _DIGITS.get(part))
        return
    meant = os.path.join(
        root, _QUEUES if part == _TABLE else part, *(("<topic>", "<queueId>") if part == _QUEUES else ())
    )
    if part == _QUEUES and found in ("topic", _TABLE):
        meant = os.path.join(where, *(("<topic>",) if found == _TABLE else ()), "<queueId>")
    raise BadMagicError(
        f"not {_NAMES[part]}", path=os.fspath(directory), expected=_NAMES[part], got=_NAMES[found],
        hint=f"pass {meant}" if disk.is_directory(meant.partition("/<")[0]) else "pass the directory where that is",
    )  # fmt: skip


def refuse_strangers(directory: str | os.PathLike[str], name: str, digits: int | None = 20) -> None:
    """`BadMagicError` where a directory, which should be `name`, only has entries of another kind."""
    there = store.strangers(os.fspath(directory), digits)
    if there:
        more = ", ..." if len(there) > _SHOWN else ""
        raise BadMagicError(
            f"not {name}", path=os.fspath(directory),
            expected=f"files named by {digits} digits" if digits else "files named by numbers",
            got=f"other names: {', '.join(there[:_SHOWN])}{more}",
        )  # fmt: skip


def _what_it_is(where: str) -> tuple[str, str]:
    """What a directory is by its place in a store, and that store's root; ("", ""): its place does not show it."""
    for depth, found in ((2, _QUEUES), (1, "topic"), (0, _TABLE)):  # outermost first: a topic may have a part's name
        above = _above(where, depth)
        root = os.path.dirname(above)
        if os.path.basename(above) == _QUEUES and store.is_left_of_store(root) and store.are_queues(above):
            return found, root
    if store.is_left_of_store(where):
        return "root", where
    name, root = os.path.basename(where), os.path.dirname(where)
    if name in (_COMMIT_LOG, _INDEX) and store.is_left_of_store(root):
        return name, root
    return "", ""


def store_around(where: str) -> str:
    """The root of the store that a directory is a part of; "": there seems to be none."""
    return _what_it_is(os.path.abspath(where))[1]


def _above(where: str, depth: int) -> str:
    for _ in range(depth):
        where = os.path.dirname(where)
    return where
