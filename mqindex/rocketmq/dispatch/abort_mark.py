"""`abort`: a store that is being written counts as unclean until it is known that nothing went wrong."""

from __future__ import annotations

from types import TracebackType

from mqindex._native.owner import Owner
from mqindex.files import disk
from mqindex.files.paths import join, parent_of
from mqindex.files.results.whole_file import have_file


class AbortMark:
    """The file `abort` of a store, as a broker's: if it exists, the next one to open the store repairs it.

    Leaving the block removes it if `proven` was set, nothing was raised, and this is the process that made it.
    """

    def __init__(self, root: str) -> None:
        self._path = join(root, "abort")
        self._owner = Owner(root)
        self._stands = False
        self.proven = False

    def set(self, text: bytes = b"") -> None:
        """Make the file, durably, before anything is written; a 4.x broker's is empty."""
        self._stands = True
        have_file(self._path, text)
        disk.sync_directory(parent_of(self._path))

    def __enter__(self) -> AbortMark:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and self.proven and self._stands and self._owner.here:
            disk.remove(self._path)
