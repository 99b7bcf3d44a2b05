"""Maps of a log's files, for messages at any place: made when they are needed, a few at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from mqindex._native.guard import Mapping
from mqindex.files.mapped_file import MappedFile
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.log.log_scan import open_whole, require_whole

__all__ = ["LogMaps"]

_OPEN_MAPS = 4


class LogMaps:
    """The maps that were used last. Safe from several threads.

    Maps are never closed here, only released: another thread may be reading one. The last user unmaps it.

    lock : held while maps are made and released. require_open : raises where the log was closed.
    """

    def __init__(self, lock: AbstractContextManager[Any], require_open: Callable[[], None]) -> None:
        self._lock, self._require_open = lock, require_open
        self._maps: OrderedDict[str, MappedFile] = OrderedDict()

    def of(self, file: LogFile) -> Mapping:
        """The map of a file, for as long as the caller keeps it.

        `TruncatedFileError`: the file is shorter than it was when it was listed. `FileNotFoundError`: it is gone.
        """
        with self._lock:
            self._require_open()
            mapped = self._maps.get(file.path)
            if mapped is None or mapped.map.cut:
                mapped = self._maps[file.path] = open_whole(file)
                if len(self._maps) > _OPEN_MAPS:
                    self._maps.popitem(last=False)
            self._maps.move_to_end(file.path)
        require_whole(file, mapped)
        return mapped.map

    def clear(self) -> None:
        """Release all; the caller holds the lock."""
        self._maps.clear()
