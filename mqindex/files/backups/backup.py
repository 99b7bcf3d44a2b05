"""Where replaced files go: `mqindex-backup-<UTC>/` in the directory that was repaired, with the same subdirectories.

Whatever has its name in a backup is complete: what cannot be linked or renamed there is first copied under a
temporary name.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable
from typing import Final

from mqindex.errors import FileStateError, path_of
from mqindex.files import disk
from mqindex.files.backups.backup_record import recorded
from mqindex.files.copying import copy_whole, remove_whole
from mqindex.files.results import staging

NO_BACKUP: Final = "*"
"""In the place of a backup's name: none is named."""
_PREFIX = "mqindex-backup-"


def backup_in(directories: Iterable[str]) -> str:
    """A name for new backups in all these directories, still unused in each."""
    homes, names = list(directories), staging.names_like(f"{_PREFIX}{staging.backup_name()}")
    return next(each for each in names if not any(disk.exists(os.path.join(home, each)) for home in homes))


def find_backups(backup: str | os.PathLike[str], root: str, homes: Collection[str]) -> list[str]:
    """The backups of this name in those directories of `root`.

    backup : a path, which chooses one directory; a name, or `<root>/*/<name>`: all that have it; `NO_BACKUP`:
        the error names those that are there.
    """
    given = path_of("backup", backup).rstrip(os.sep)
    if given == NO_BACKUP:
        there = _names(homes)
        raise FileStateError(
            "no backup is named" if there else "no backup is there", path=root,
            expected=f"--undo with one of {', '.join(there)}" if there else None,
        )  # fmt: skip
    place, name = os.path.split(given)
    if os.path.basename(place) == "*":
        place = os.path.dirname(place)
    if not name.startswith(_PREFIX):
        raise FileStateError("not a backup", path=given, expected=f"a directory named {_PREFIX}<UTC>")
    chosen = [home for home in homes if not place or os.path.realpath(place) in map(os.path.realpath, (home, root))]
    found = [path for home in chosen if disk.is_directory(path := os.path.join(home, name))]
    if not found and place and disk.is_directory(given):
        raise FileStateError("a backup of another directory", path=given, expected=f"one in {root}")
    if not found:
        others = f"; there is {', '.join(names)}" if (names := _names(homes)) else ""
        raise FileNotFoundError(errno.ENOENT, f"no such backup{others}", given if place else os.path.join(root, name))
    return found


def _names(homes: Iterable[str]) -> list[str]:
    """All backups that have a record, the newest first."""
    found = {name: record.number for home in homes for name, record in recorded(home).items()}
    return sorted(found, key=lambda name: found[name], reverse=True)


def keep(path: str, backup: str, root: str) -> None:
    """Give the old file a second name, or make a copy where links are impossible. A file already kept stays.

    The caller syncs the directories `homes_above` before the old name leads to another file.
    """
    if disk.exists(backup):
        return
    _make_home(backup, root)
    if not disk.link(path, backup):
        _copy_there(path, backup)


def move_aside(path: str, backup: str, root: str) -> None:
    """Move a file or directory to the backup; to another file system by a copy. The caller syncs as after `keep`."""
    _make_home(backup, root)
    if disk.exists(backup):
        raise FileStateError(
            "something is already in the place where an old file is to be kept", path=backup, got=f"{path} besides"
        )
    try:
        disk.rename(path, backup)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_there(path, backup)
        disk.sync_directories(homes_above(backup, root))
        remove_whole(path)


def homes_above(path: str, root: str) -> list[str]:
    """The directories above a path, down from `root`.

    >>> homes_above("/store/index/1", "/store")
    ['/store', '/store/index']
    """
    home = os.path.dirname(path)
    return [root] if home == root else [*homes_above(home, root), home]


def _copy_there(path: str, backup: str) -> None:
    fresh = disk.temporary(os.path.dirname(backup), "copy")
    try:
        copy_whole(path, fresh)
        disk.rename(fresh, backup)
    except BaseException:
        if disk.exists(fresh):
            remove_whole(fresh)
        raise


def _make_home(path: str, root: str) -> None:
    """The directories above a backup, owned as the store's root is."""
    home = os.path.dirname(path)
    if disk.is_directory(home):
        return
    _make_home(home, root)
    disk.make_directory(home)
    disk.own_like(home, root)
