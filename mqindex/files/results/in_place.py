"""Files of a result that go to their names in an object store as they are built, by the one process that builds all.

No attempt of a task can come after its run has ended, as on a cluster; so there is nothing that the server must copy.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from mqindex.files.places.place import Place
from mqindex.files.places.storage import errors_of
from mqindex.files.results.delivery import checksum, inside
from mqindex.files.results.elsewhere import say_made


class Placed(NamedTuple):
    """A file of a result that is where it belongs. `name`: below the output."""

    name: str
    size: int
    crc32c: int


class InPlace:
    """What the run of a scratch has brought to its output so far. For one thread at a time."""

    def __init__(self, scratch: Place, out: Place) -> None:
        self._scratch, self._out = scratch, out
        self.placed: list[Placed] = []

    def bring(self, path: str, name: str) -> Place:
        """Move a finished file of this machine to its name; returns where it is now.

        The scratch says so beforehand: if the run fails, or is killed, the file is removed by that.
        """
        target = inside(self._out, name)
        say_made(self._scratch, [*(one.name for one in self.placed), name])
        self.placed.append(Placed(name, os.path.getsize(path), checksum(path)))
        with errors_of(target):
            self._out.storage.upload(target.path, path)
        os.unlink(path)
        return target

    def take_back(self) -> None:
        """Remove them all; an `OSError` says that one may be there still."""
        while self.placed:
            target = inside(self._out, self.placed[-1].name)
            with errors_of(target):
                target.storage.remove(target.path)
            self.placed.pop()


def in_place(scratch: str, out: str) -> InPlace | None:
    """None: the result appears by one rename."""
    if not isinstance(out, Place) or out.storage.renames:
        return None
    assert isinstance(scratch, Place)
    return InPlace(scratch, out)
