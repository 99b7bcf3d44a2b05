"""Who may write a file, by its owner and mode; and whose a new file gets."""

from __future__ import annotations

import itertools
import os
import stat

from mqindex.files import disk

__all__ = ["is_shut", "neighbour_of", "rights"]


def is_shut(status: os.stat_result, owner: os.stat_result) -> bool:
    """Whether the user `owner` cannot write. A group's right counts as his: he may be in the group."""
    mine = status.st_mode & stat.S_IWUSR if status.st_uid == owner.st_uid else status.st_mode & 0o022
    return owner.st_uid != 0 and not mine


def rights(status: os.stat_result) -> str:
    """Mode and owner, as `ls -l` shows them."""
    return f"{stat.filemode(status.st_mode)} of user {status.st_uid}"


def neighbour_of(path: str) -> os.stat_result:
    """The owner and mode that a new file takes: of the file it replaces, else of one beside it, else of the directory.

    Read at once, and not by its name later: a file beside it may be removed at any moment, by another worker of the
    same build or by a broker whose files expire.
    """
    home = os.path.dirname(path) or "."
    beside = (os.path.join(home, name) for name in sorted(os.listdir(home)))
    there = filter(None, map(disk.status, itertools.chain([path], beside)))
    return next((like for like in there if stat.S_ISREG(like.st_mode)), None) or os.stat(home)
