"""Maps of files that belong together: made when they are needed, a few at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from mqindex.errors import ClosedFileError
from mqindex.files.fork_lock import new_lock
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.opening import map_file


class FileMaps:
    """Maps of the files last read, not more than `limit`; for several threads.

    A map is never closed here, only released: another thread may be reading it, and the last one unmaps it.
    `thing` : whose files these are, as people say.
    """

    def __init__(self, thing: str, limit: int = 4) -> None:
        self._thing, self._limit = thing, limit
        self._lock = new_lock()
        self._maps: OrderedDict[str, MappedFile] | None = OrderedDict()

    def get(self, path: str, open_file: Callable[[str], MappedFile] = map_file) -> MappedFile:
        """The whole file as it is now, for as long as the caller keeps its `map`. `open_file` : how it is opened."""
        with self._lock:
            if self._maps is None:
                raise ClosedFileError(f"the {self._thing} is closed", path=path)
            mapped = self._maps.get(path)
            if mapped is not None:
                mapped.require_asked_for()
            if mapped is None or mapped.map.cut or mapped.map.size() != mapped.size:
                mapped = self._maps[path] = open_file(path)
                if len(self._maps) > self._limit:
                    self._maps.popitem(last=False)[1].require_asked_for()
            self._maps.move_to_end(path)
            return mapped

    def forget(self, path: str) -> None:
        """Drop the map of a file that is gone or was replaced."""
        with self._lock:
            if self._maps is not None and (mapped := self._maps.pop(path, None)) is not None:
                mapped.require_asked_for()

    def close(self) -> None:
        """Release all maps; later calls are a `ClosedFileError`."""
        with self._lock:
            maps = [] if self._maps is None else list(self._maps.values())
            self._maps = None
        for mapped in maps:
            mapped.require_asked_for()
