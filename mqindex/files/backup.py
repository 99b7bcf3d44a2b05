"""Where replaced files go: `mqindex-backup-<UTC>/` in the directory that was repaired, in its shape."""

from __future__ import annotations

import errno
import os
import shutil

from mqindex.files import disk, staging

__all__ = ["keep", "move_aside", "neighbour_of"]

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV)


def keep(path: str, backup: str, root: str) -> None:
    """A second name for the old file; where there can be no link, a copy. What is kept already stays.

    The caller makes the name durable, before the old one leads to another file.
    """
    if os.path.lexists(backup):
        return
    _make_home(backup, root)
    try:
        os.link(path, backup, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy(path, backup)


def move_aside(path: str, backup: str, root: str) -> None:
    """A file or directory goes to the backup, durably; to another file system by a copy."""
    _make_home(backup, root)
    backup = staging.unused(backup)
    try:
        os.rename(path, backup)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_away(path, backup)
    disk.sync_directory(os.path.dirname(backup))


def _copy_away(path: str, backup: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.copytree(path, backup, symlinks=True)
        disk.sync_tree(backup)
        shutil.rmtree(path)
    else:
        _copy(path, backup)
        os.unlink(path)


def _copy(path: str, backup: str) -> None:
    disk.copy(path, backup)
    disk.sync_files([backup])


def _make_home(path: str, root: str) -> None:
    """The directories above a backup, owned as the store's root is."""
    home = os.path.dirname(path)
    if os.path.isdir(home):
        return
    _make_home(home, root)
    os.mkdir(home)
    disk.own_like(home, root)
    disk.sync_directory(os.path.dirname(home))


def neighbour_of(path: str) -> str:
    """Whose owner and mode a new file takes: those of the one it replaces, else one beside it, else the directory."""
    if os.path.isfile(path):
        return path
    home = os.path.dirname(path)
    beside = (os.path.join(home, name) for name in sorted(os.listdir(home)))
    return next((one for one in beside if os.path.isfile(one)), home)
