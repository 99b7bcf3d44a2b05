"""Whose a place is, and whether a result may be there; and what is there after an interrupt.

A store and a log dir are a broker's, and have parts: what has one of the broker's names in a store's root, and the
partitions of a log dir. A result is no part of either and in no part, whatever links or mounts lead there. Another name
in a store's root is free; in a log dir none is. A store or a log dir as a whole may be moved aside where no broker
runs, which `mqindex.files.results.output_place.require_new` looks at.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Final

from mqindex.cli.kafka import kinds as kafka_kinds
from mqindex.cli.kinds import KINDS
from mqindex.cli.rocketmq import kinds as rocketmq_kinds
from mqindex.cli.trouble import Trouble
from mqindex.files.path_relations import around, upwards
from mqindex.files.places.place import Place
from mqindex.rocketmq.kinds import is_anywhere, is_part, is_root, kind_of_directory, names_seen, offset_of
from mqindex.tables.kinds import kind_of

_LOCKS: Final = ("lock", ".lock")
_BUILT: Final = (".index", ".timeindex", ".txnindex")  # what a partition's directory has that `rebuild` made
_MOST_LINKS: Final = 40  # as the system follows


def require_outside(out: str, home: str | None = None) -> None:
    """Refuse a place that is a broker's, or in one, or in `home` or at it."""
    if isinstance(out, Place):
        return  # no broker reads there
    own = [] if home is None or isinstance(home, Place) else _places(home)
    for way in _ways(out):
        if (found := around(way, own)) is not None:
            raise Trouble(f"{out}: expected a place outside of {found}, where brokers may stumble over it")
        for place in upwards(way):
            if (whose := _whose(place, above=place != way)) is not None:
                raise Trouble(f"{out}: expected a place outside of {place}: it is {whose}, whose broker reads it")


def _places(home: str) -> list[str]:
    """`home`, of either broker's, and wherever its parts are: links may lead to other disks."""
    from mqindex.kafka.directories import log_dir
    from mqindex.rocketmq.directories import store

    found = [home, *store.places_of(home)]
    with contextlib.suppress(OSError):  # not there, or not to be listed
        found += log_dir.places_of(home)
    return found


def _ways(path: str) -> list[str]:
    """A path as it is written, and each that its links make of it, one after the other: all show whose it is."""
    found = list(dict.fromkeys((os.path.abspath(path), os.path.realpath(path))))
    for way in found:
        for place in upwards(way):
            if os.path.islink(place) and len(found) < _MOST_LINKS:
                beyond = os.path.join(os.path.dirname(place), os.readlink(place), os.path.relpath(way, place))
                found += {os.path.normpath(beyond)}.difference(found)
    return found


def _whose(place: str, *, above: bool) -> str | None:
    """What is a broker's there, in words. `above`: a result would be in it, and not take its place."""
    # Here, as most commands write nothing.
    from mqindex.kafka.directories.log_dir import list_partitions
    from mqindex.kafka.kinds import is_log_dir, is_partition, partition_name

    root, name = os.path.split(place)
    if is_part(name) and is_root(root):
        return "a part of a store"
    names = names_seen(place)
    try:
        if partition_name(place) is not None and is_partition(place) and not all(one.endswith(_BUILT) for one in names):
            return KINDS[kafka_kinds.PARTITION]
        if above and (
            is_log_dir(place) or (".lock" in names and any(is_partition(one.path) for one in list_partitions(place)))
        ):
            return KINDS[kafka_kinds.LOG_DIR]
        # A commit log may be in any place; beside its files a broker would stumble over others.
        of_log = all(offset_of(one) is not None or is_anywhere(one) for one in names)
        if names and of_log and kind_of_directory(place) == rocketmq_kinds.COMMIT_LOG_DIR:
            return KINDS[rocketmq_kinds.COMMIT_LOG_DIR]
    except OSError:  # not there yet, a file, or not to be listed
        pass
    return None


def require_no_broker_file(out: str) -> None:
    """Refuse to overwrite a file that is a broker's, wherever it is, and whatever is in a store's root."""
    if not os.path.isfile(out):
        return
    kind = kind_of(os.path.realpath(out))
    if kind is not None:
        raise Trouble(f"{out}: it is {KINDS[kind]}, which is not overwritten")
    if any(os.path.basename(way) in _LOCKS or is_root(os.path.dirname(way)) for way in _ways(out)):
        raise Trouble(f"{out}: it may be a broker's, and is not overwritten; choose another name")


def appearing(out: str, *, seen: bool = True) -> Callable[[], str]:
    """What is true, whenever it is asked, of a result that takes the place of what is at `out` now by one rename.

    `seen`: this machine sees that place.
    """
    if isinstance(out, Place):
        return lambda: f"{out} is complete, or no reader takes it for a result"
    before = _identity(out)

    def there() -> str:
        now = _identity(out)
        if now == before:
            return "nothing was changed" if seen else f"{out} is complete, or was not changed"
        return f"{out} is complete" if now is not None else f"what was at {out} is in {out}.backup-..."

    return there


def _identity(path: str) -> tuple[int, int] | None:
    """What tells a file or directory from another one in its place; None: nothing is there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
