"""Where the messages with some keys of a topic are, in files of a log of which the index is known to lack nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt

from mqindex.columns.keys import key_batch
from mqindex.errors import MQIndexError
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.kinds import index_paths
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.scanning.message_filter import TAGS_KEY, MessageFilter
from mqindex.zones.cache import FileIdentity, ZoneCache, identity_of
from mqindex.zones.index_cover import IndexCover, known_cover

_Ints = npt.NDArray[np.int64]
_ALL: Final = 2**31 - 1


class IndexedKeys:
    """Places by the keys that a scan is asked for.

    Nothing is asked where the index cannot answer as the log does: without a topic, for a key of TAGS, which only some
    brokers index, for an empty one, and for one that is no text of a message.

    directory : of the index files; None: it is not known
    """

    def __init__(self, wanted: MessageFilter, directory: str | None, cache: ZoneCache) -> None:
        self._directory, self._cache = directory, cache
        self._topics, self._keys = _texts(wanted)
        self._paths: dict[FileIdentity, str] | None = None
        self._places: dict[str, _Ints] = {}

    def of(self, file: LogFile) -> tuple[int, _Ints] | None:
        """Up to which phy offset of the file the index answers, and the places before it, each once and in order; there
        may be other messages among them. None: it does not.
        """
        if self._directory is None or not (self._topics and self._keys):
            return None
        try:
            cover = known_cover(self._cache, identity_of(file.path))
            if cover is None or not cover.files <= self._present().keys():
                return None
            found = np.unique(np.concatenate([cover.others, *(self._of_index(one, cover) for one in cover.files)]))
        except (MQIndexError, OSError):  # deleted meanwhile, or cut: the log has the answer
            return None
        return cover.end, found[(found >= file.start) & (found < cover.end)]

    def _present(self) -> dict[FileIdentity, str]:
        if self._paths is None:
            assert self._directory is not None
            self._paths = {}
            for path in index_paths(self._directory):
                with suppress(FileNotFoundError):
                    self._paths[identity_of(path)] = path
        return self._paths

    def _of_index(self, identity: FileIdentity, cover: IndexCover) -> _Ints:
        path = self._present()[identity]
        if path not in self._places:
            with IndexFile._open_known(path, cover.geometry, sidecars=False) as index:
                found = [_hits(index, topic, self._keys) for topic in self._topics]
                if identity_of(path) != identity:
                    raise FileNotFoundError(path)
            self._places[path] = np.concatenate(found)
        return self._places[path]


def _hits(index: IndexFile, topic: str, keys: list[str]) -> _Ints:
    return index._select_hashes(key_batch(keys, topic).hashes(), _ALL, begin=-(2**63), end=2**63 - 1)[0]


def _texts(wanted: MessageFilter) -> tuple[list[str], list[str]]:
    """The topics and keys to ask for; none where the index has not all of them."""
    if wanted.topics is None or wanted.keys is None:
        return [], []
    asked = wanted.topics.texts | wanted.keys.texts
    if any(not text or text.startswith(TAGS_KEY) for text in asked):
        return [], []
    try:
        topics, keys = ([text.decode() for text in one.texts] for one in (wanted.topics, wanted.keys))
    except UnicodeDecodeError:
        return [], []
    return topics, keys
