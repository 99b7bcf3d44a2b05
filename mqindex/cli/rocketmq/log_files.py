"""One file of a commit log or of a queue, for the commands that take one."""

from __future__ import annotations

import os

from mqindex.cli.trouble import Trouble
from mqindex.rocketmq.kinds import number_of


def log_file_extent(path: str) -> tuple[int, int]:
    """[start, stop) of a file in the whole log or queue, by its name and its length."""
    start = number_of(path)
    if start is None:
        raise Trouble(
            f"{path} is no part of a log or queue: expected a name of 20 digits, the offset at which it starts"
        )
    return start, start + os.path.getsize(path)
