"""New index files take the places of old ones, in one partition, one rename each."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mqindex.files import disk
from mqindex.files.backup import keep, move_aside

__all__ = ["Exchange", "exchange_files"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """`place`: new files, their final paths, and the logs whose owner and mode they take where they replace nothing.

    `remove`: files that go to the backup. `backup`: a directory in the partition's, made when first needed.
    """

    partition: str
    backup: str
    place: tuple[tuple[str, str, str], ...]
    remove: tuple[str, ...]

    def kept(self, path: str) -> str:
        """Where the old file of this path is kept."""
        return os.path.join(self.backup, os.path.basename(path))


def exchange_files(exchange: Exchange) -> bool:
    """Exchange the files; whether there is a backup now. A second attempt finds done what is done.

    Old files first get a second name in the backup; whenever this is cut off, each name leads to the old file or to the
    new one.
    """
    waiting = [one for one in exchange.place if os.path.exists(one[0])]
    replaced = [target for _, target, _ in waiting if os.path.lexists(target)]
    for target in replaced:
        keep(target, exchange.kept(target), exchange.partition)
    if replaced:
        disk.sync_directory(exchange.backup)
    for path, target, log in waiting:
        disk.own_like(path, target if os.path.isfile(target) else log)
        os.replace(path, target)
    for path in exchange.remove:
        if os.path.lexists(path):
            move_aside(path, exchange.kept(path), exchange.partition)
    disk.sync_directory(exchange.partition)
    return os.path.isdir(exchange.backup)
