"""Who may write a file, told by its owner and mode."""

from __future__ import annotations

import os
import stat

__all__ = ["is_shut", "rights"]


def is_shut(status: os.stat_result, owner: os.stat_result) -> bool:
    """Whether the user `owner` cannot write; a group's right may be his too, so that counts as one."""
    mine = status.st_mode & stat.S_IWUSR if status.st_uid == owner.st_uid else status.st_mode & 0o022
    return owner.st_uid != 0 and not mine


def rights(status: os.stat_result) -> str:
    """As `ls -l` says them."""
    return f"{stat.filemode(status.st_mode)} of user {status.st_uid}"
