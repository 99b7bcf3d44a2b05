"""Where replaced files go: `mqindex-backup-<UTC>/` in the directory that was repaired, in its shape.

Whatever has a name in a backup is whole: what cannot be linked or renamed there is copied beside its name first.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.copying import copy_whole, remove_whole

__all__ = ["find_backups", "keep", "move_aside", "neighbour_of"]


_PREFIX = "mqindex-backup-"


def find_backups(backup: str | os.PathLike[str], root: str, homes: Iterable[str]) -> list[str]:
    """The backups of this name in those directories of `root`.

    backup : a path, which chooses one directory; a name, or `<root>/*/<name>`: every directory that has it.
    """
    given = os.fspath(backup).rstrip(os.sep)
    place, name = os.path.split(given)
    if os.path.basename(place) == "*":
        place = os.path.dirname(place)
    if not name.startswith(_PREFIX):
        raise FileStateError("not a backup", path=given, expected=f"a directory named {_PREFIX}<UTC>")
    chosen = [home for home in homes if not place or os.path.realpath(place) in map(os.path.realpath, (home, root))]
    found = [path for home in chosen if disk.is_directory(path := os.path.join(home, name))]
    if not found and place and disk.is_directory(given):
        raise FileStateError("a backup of another directory", path=given, expected=f"one in {os.fspath(root)}")
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no such backup", os.path.join(root, name) if not place else given)
    return found


def keep(path: str, backup: str, root: str) -> None:
    """A second name for the old file; where there can be no link, a copy. What is kept already stays.

    The caller makes the name durable, before the old one leads to another file.
    """
    if disk.exists(backup):
        return
    _make_home(backup, root)
    if not disk.link(path, backup):
        _copy_there(path, backup)


def move_aside(path: str, backup: str, root: str) -> None:
    """A file or directory goes to the backup, durably; to another file system by a copy."""
    _make_home(backup, root)
    if disk.exists(backup):
        raise FileStateError("something stands where an old file is to be kept", path=backup, got=f"{path} besides")
    try:
        disk.rename(path, backup)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_there(path, backup)
        disk.sync_directory(os.path.dirname(backup))
        remove_whole(path)
    else:
        disk.sync_directory(os.path.dirname(backup))


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
    disk.sync_directory(os.path.dirname(home))


def neighbour_of(path: str) -> str:
    """Whose owner and mode a new file takes: those of the one it replaces, else one beside it, else the directory."""
    if disk.is_file(path):
        return path
    home = os.path.dirname(path) or "."
    beside = (os.path.join(home, name) for name in sorted(os.listdir(home)))
    return next((one for one in beside if disk.is_file(one)), home)
