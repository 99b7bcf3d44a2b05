"""How a rebuilt directory appears: its parts are gathered in a scratch, brought to the disk, and renamed at once."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from mqindex.files import disk
from mqindex.files.places.place import Place
from mqindex.files.results import elsewhere, staging


@dataclass(frozen=True, slots=True)
class Publication:
    """The directory that appears at `out`; `aside`: where an old `out` goes.

    `moves`: built files and directories, and where they go below `out`. `directories`: those that are made even if
    empty. `about`: what the list of files in an object store says of them all. `placed`: name, size and checksum of
    files that are at their names there already.
    """

    scratch: str
    out: str
    aside: str | None
    moves: tuple[tuple[str, str], ...]
    directories: tuple[str, ...] = ()
    about: tuple[tuple[str, Any], ...] = ()
    placed: tuple[tuple[str, int, int], ...] = ()


class Published(NamedTuple):
    """The paths of all files; where the directory that they replaced is now, if there was one; how long the names took
    to become durable.
    """

    paths: list[str]
    backup: str | None
    fsync_seconds: float


def publish(publication: Publication) -> Published:
    """Let the result appear by one rename, or as `elsewhere` does; a second attempt finds its work done."""
    if isinstance(publication.out, Place):
        assert isinstance(publication.scratch, Place)
        found = elsewhere.publish(
            publication.scratch,
            publication.out,
            publication.moves,
            publication.aside,
            dict(publication.about),
            publication.placed,
        )
        return Published(*found, 0.0)
    result, seconds = os.path.join(publication.scratch, "result"), 0.0
    if publication.aside is not None:
        staging.end_exchange(publication.out, publication.aside)
    if _published(publication):
        backup = None if publication.aside is None else staging.newest(publication.aside)
    else:
        for directory in publication.directories:
            _make_directory(os.path.normpath(os.path.join(result, directory)))
        for source, name in publication.moves:
            if disk.exists(source):
                target = os.path.join(result, name)
                _make_directory(os.path.dirname(target))
                disk.rename(source, target)
        if disk.is_directory(publication.out):  # made with rights of its own, for this
            disk.own_like(result, publication.out)
        started = time.perf_counter()
        disk.sync_tree(result)
        backup = staging.exchange(result, publication.out, publication.aside)
        seconds = time.perf_counter() - started
    paths = [path for _, name in publication.moves for path in disk.files_of(os.path.join(publication.out, name))]
    return Published(paths, backup, seconds)


def published_so_far(publication: Publication) -> str:
    """What is true when who published it was killed."""
    if publication.aside is None:
        return f"{publication.out} is complete, or as it was before; then run it again"
    return f"{publication.out} is complete, or the old one; an old one that is not there is beside it; run it again"


def _make_directory(path: str) -> None:
    """With those above it; their names become durable with the whole tree."""
    if not disk.exists(path):
        _make_directory(os.path.dirname(path))
        disk.make_directory(path)


def _published(publication: Publication) -> bool:
    gone = not disk.exists(os.path.join(publication.scratch, "result"))
    return (
        gone
        and bool(publication.moves)
        and all(disk.exists(os.path.join(publication.out, name)) for _, name in publication.moves)
        and not any(disk.exists(source) for source, _ in publication.moves)
    )
