"""Files change their places in a store, one rename each; what they replace goes to a backup that can be put back.

Before the first rename the backup holds a record of all names that change, so that `put_back` knows what was there
before even if a run was killed half-way. At every moment each name leads to the old file or to the new one.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.backups.backup import homes_above, keep, move_aside
from mqindex.files.backups.backup_record import RECORD, Entry, new_record, read_record
from mqindex.files.copying import copy_whole, remove_whole
from mqindex.files.results import staging
from mqindex.files.rights import is_led_by_another, neighbour_of


class Change(NamedTuple):
    """Afterwards `name`, below the root, leads to the file or directory `source`; None: to nothing.

    `like`: whose owner and mode `source` takes; None: those of the file that it replaces, else a neighbour's.
    """

    name: str
    source: str | None = None
    like: str | None = None

    def undone(self, below: str = ".") -> str:
        """What `put_back` did, in words; `below`: a directory to name with it."""
        name = os.path.normpath(os.path.join(below, self.name))
        return f"move {name} to the backup" if self.source is None else f"put {name} back"


@dataclass(frozen=True, slots=True)
class Exchange:
    """`changes` are made in this order below `root`. Successive ones in one directory there are synced together, before
    the next one is made. `backup`: a directory in `root`, made when first needed.

    `takes_back`: the name of the backup in `root` that they put back.
    """

    root: str
    backup: str
    changes: tuple[Change, ...]
    takes_back: str | None = None


# ---- there --------------------------------------------------------------------------------------------------------


def exchange_files(exchange: Exchange) -> list[str]:
    """Make the changes durably and return the paths of all new files. A second attempt skips what is done.

    An `OSError` is raised before the first change where a directory whose names change may not be written; a later one
    says that there may be changes, and where the old files are.
    """
    root = exchange.root
    pending = dict.fromkeys(one for one in exchange.changes if disk.exists(one.source or os.path.join(root, one.name)))
    if pending:
        for one in pending:
            _require_no_links(root, one.name)
        for home in sorted({_home_of(root, one.name) for one in pending}):
            disk.require_writable(home)
        with _half_done(exchange.backup), staging.scratch(root) as scratch:
            _record(exchange, pending, scratch)
            _keep_old(exchange, pending)
            for _, some in itertools.groupby(exchange.changes, lambda one: one.name.partition(os.sep)[0]):
                _make_all(exchange, list(some), pending, scratch)
    return [path for one in exchange.changes if one.source for path in disk.files_of(os.path.join(root, one.name))]


def _home_of(root: str, name: str) -> str:
    """The directory whose names change first: that of the name, or where that is missing, the next one above."""
    there = list(itertools.takewhile(disk.is_directory, homes_above(os.path.join(root, name), root)))
    if not there:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), root)
    return there[-1]


@contextlib.contextmanager
def _half_done(backup: str) -> Iterator[None]:
    """An `OSError` of the block says what is true of the files."""
    try:
        yield
    except OSError as error:
        if not disk.exists(backup):
            raise
        text = f"{error.strerror}; {old_or_new(backup)}"
        raise OSError(error.errno, text, error.filename, None, error.filename2) from error


def old_or_new(backup: str) -> str:
    """What is true of the files of an exchange that did not end."""
    return f"each file is the old or the new one, the old ones are in {backup}; run it again"


def changed_so_far(exchange: Exchange) -> str | None:
    """The same, asked from elsewhere when who made the changes was killed; None: there is no change yet."""
    if disk.is_directory(exchange.root) and not disk.exists(exchange.backup):
        return None
    return old_or_new(exchange.backup)


def _record(exchange: Exchange, pending: Collection[Change], scratch: str) -> None:
    """Make the backup appear with its record, complete and synced; a second attempt uses that of the first."""
    if disk.exists(exchange.backup):
        return
    entries = dict.fromkeys(_entry(exchange.root, one.name) for one in pending)
    content = new_record(exchange.root, tuple(entries), exchange.takes_back).to_bytes()
    home = _new_directory(scratch, exchange.root)
    record = os.path.join(home, RECORD)
    disk.write_new(record, content)
    disk.own_like(record, exchange.root)
    disk.sync_file(record)
    disk.sync_directory(home)
    disk.rename(home, exchange.backup)
    disk.sync_directory(exchange.root)


def _new_directory(scratch: str, like: str) -> str:
    """A directory in `scratch` that has owner and mode before it gets its name."""
    path = disk.temporary(scratch, "directory")
    disk.make_directory(path)
    disk.own_like(path, like)
    return path


def _entry(root: str, name: str) -> Entry:
    """The topmost name that changes: a directory to make above `name`, or a file in the place of one, else `name`."""
    for above in _above(name):
        if not disk.is_directory(os.path.join(root, above)):
            return Entry(above, disk.exists(os.path.join(root, above)))
    return Entry(name, disk.exists(os.path.join(root, name)))


def _above(name: str) -> Iterator[str]:
    """The directories above a name, the topmost first."""
    parts = name.split(os.sep)
    return (os.path.join(*parts[:end]) for end in range(1, len(parts)))


def _keep_old(exchange: Exchange, pending: Collection[Change]) -> None:
    """Give second names to all files that a file replaces, durably before the first of them is replaced."""
    homes: set[str] = set()
    for one in pending:
        path, kept = os.path.join(exchange.root, one.name), os.path.join(exchange.backup, one.name)
        if one.source is not None and _file_for_file(one.source, path):
            keep(path, kept, exchange.root)
            homes.update(homes_above(kept, exchange.root))
    disk.sync_directories(homes)


def _file_for_file(source: str, path: str) -> bool:
    return disk.exists(path) and not disk.is_directory(path) and not disk.is_directory(source)


def _make_all(exchange: Exchange, changes: Sequence[Change], pending: Collection[Change], scratch: str) -> None:
    """Make those that are pending; then all names are made durable, also those of an attempt that was killed."""
    homes: set[str] = set()
    for one in changes:
        if one in pending:
            _make(exchange, one, scratch)
        for home in (exchange.root, exchange.backup):
            homes.update(homes_above(os.path.join(home, one.name), exchange.root))
    disk.sync_directories([home for home in homes if disk.is_directory(home)])


def _make(exchange: Exchange, change: Change, scratch: str) -> None:
    path, kept = os.path.join(exchange.root, change.name), os.path.join(exchange.backup, change.name)
    if change.source is None:
        move_aside(path, kept, exchange.root)
        return
    _make_parents(exchange, change.name, scratch)
    if disk.exists(path) and not _file_for_file(change.source, path):
        move_aside(path, kept, exchange.root)
    _own(change.source, path, change.like)
    _rename(exchange.root, change.source, change.name)


def _make_parents(exchange: Exchange, name: str, scratch: str) -> None:
    for above in _above(name):
        path = os.path.join(exchange.root, above)
        if not disk.is_directory(path):
            if disk.exists(path):
                move_aside(path, os.path.join(exchange.backup, above), exchange.root)
            _rename(exchange.root, _new_directory(scratch, os.path.dirname(path)), above)


def _own(source: str, path: str, like: str | None) -> None:
    """Owner and mode, before the new file has its name."""
    if like == source:
        return
    if disk.is_directory(source):
        disk.own_like(source, like or os.path.dirname(path))
        for one in disk.files_of(source):
            disk.own_like(one, source)
    else:
        disk.own_like(source, like or (path if disk.is_file(path) else neighbour_of(path)))


def _rename(root: str, source: str, name: str) -> None:
    """Rename into place; from another file system, or another mount of the same, after a copy to the same one."""
    path = os.path.join(root, name)
    try:
        disk.rename(source, path)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        failed = error
    for home in _homes_near(root, name):
        with staging.scratch(home) as near:
            copied = os.path.join(near, "new")
            copy_whole(source, copied)
            try:
                disk.rename(copied, path)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                continue
        disk.sync_directory(os.path.dirname(path))
        remove_whole(source)
        return
    raise failed


def _homes_near(root: str, name: str) -> list[str]:
    """The directories above a name that are in its file system, the topmost first: a queue's own is the last choice."""
    homes = homes_above(os.path.join(root, name), root)
    device = os.stat(homes[-1]).st_dev
    return [home for home in homes if os.stat(home).st_dev == device]


# ---- and back -----------------------------------------------------------------------------------------------------


def put_back(root: str, backup: str, aside: str) -> tuple[Change, ...]:
    """Let every name of a backup's record lead to what it led to before; what it leads to now goes to `aside`.

    `aside` is a backup of the same kind, and `backup` is removed afterwards except for what others put into it. Returns
    what was done. After an interruption a second call finishes.
    """
    done = taken_back(root, backup)
    exchange_files(Exchange(root, aside, done, takes_back=os.path.basename(backup)))
    _remove_spent(backup, read_record(backup).changes)
    return done


def taken_back(root: str, backup: str) -> tuple[Change, ...]:
    """What `put_back` would do; nothing is changed."""
    changes = []
    for name, kept in reversed(read_record(backup).changes):
        _require_no_links(root, name)
        _require_no_links(root, os.path.join(os.path.basename(backup), name))
        path, old = os.path.join(root, name), os.path.join(backup, name)
        if not kept:
            changes.append(Change(name))
        elif disk.exists(old) and not (disk.exists(path) and os.path.samestat(os.lstat(path), os.lstat(old))):
            changes.append(Change(name, old, like=old))
    return tuple(one for one in changes if one.source or disk.exists(os.path.join(root, one.name)))


def _require_no_links(root: str, name: str) -> None:
    """A repair follows no link on its way to a name but the first, which moves all of `index` or `consumequeue` to
    another volume."""
    for depth, above in enumerate(_above(name)):
        path = os.path.join(root, above)
        if os.path.islink(path) if depth else is_led_by_another(path):
            refuse_linked([path])


def refuse_linked(paths: Iterable[str]) -> None:
    """`FileStateError` of the first of these directories, which are links."""
    for path in paths:
        raise FileStateError(
            "a directory is a link, so its files are not changed",
            path=path,
            expected="a directory",
            got=f"a link to {os.readlink(path)}",
            hint="move the files into a directory of this name, or mount their volume there",
        )


def written_since(root: str, backup: str) -> list[str]:
    """The files in the place of a backup's that somebody wrote to after they were put there.

    New files are complete, with the time of their last write, before the record of the backup is written.
    """
    record = os.path.join(backup, RECORD)
    if not disk.exists(record):
        return []
    made = os.stat(record).st_mtime_ns
    there = (os.path.join(root, one.name) for one in read_record(backup).changes)
    files = [path for place in there if disk.exists(place) for path in disk.files_of(place)]
    return [path for path in files if disk.is_file(path) and os.stat(path).st_mtime_ns > made]


def _remove_spent(backup: str, entries: Sequence[Entry]) -> None:
    """Remove the record and the empty directories; a directory with a file of others stays.

    A file that still is in its place has a second name here where a run was killed before it replaced this file.
    """
    root = os.path.dirname(backup)
    for entry in entries:
        path, old = os.path.join(root, entry.name), os.path.join(backup, entry.name)
        if entry.kept and disk.is_file(old) and disk.exists(path) and os.path.samestat(os.lstat(path), os.lstat(old)):
            disk.remove(old)
    homes = {above for entry in entries for above in (*_above(entry.name), entry.name)}
    for home in sorted(homes, key=len, reverse=True):
        _remove_empty(os.path.join(backup, home))
    record = os.path.join(backup, RECORD)
    if disk.exists(record):
        disk.remove(record)
    _remove_empty(backup)
    disk.sync_directory(os.path.dirname(backup))


def _remove_empty(path: str) -> None:
    if disk.is_directory(path) and not os.listdir(path):
        disk.remove_directory(path)
