"""HDFS, by hdfs-native: no Java."""

from __future__ import annotations

import importlib
import os
from typing import Any

from mqindex._needs import needing
from mqindex.files.fork_lock import new_lock
from mqindex.files.places.storage import Stat


class HdfsStorage:
    """A name node, as hdfs-native's `Client` takes it; without one in the URL, that of Hadoop's configuration."""

    def __init__(self, scheme: str, authority: str, query: str, options: dict[str, Any]) -> None:
        self._authority, self._query, self._options = authority, query, options
        self._lock = new_lock()
        self._client: tuple[int, Any] | None = None
        self.client()

    def __reduce__(self) -> tuple[Any, ...]:
        return HdfsStorage, ("hdfs", self._authority, self._query, self._options)

    def __repr__(self) -> str:
        return f"<storage of hdfs://{self._authority}>"

    def client(self) -> Any:
        """The client, made once in each process: after a fork its threads are gone."""
        with self._lock:
            if self._client is None or self._client[0] != os.getpid():
                self._client = os.getpid(), self._connect()
            return self._client[1]

    def _connect(self) -> Any:
        root = f"hdfs://{self._authority}"
        with needing(f"{root} needs hdfs-native: pip install 'mqindex[remote]'", "hdfs_native"):
            native: Any = importlib.import_module("hdfs_native")
        return native.Client(root if self._authority else None, {name: str(v) for name, v in self._options.items()})

    def stat(self, path: str) -> Stat:
        """See `Storage.stat`."""
        return _stat(self.client().get_file_info(f"/{path}"))

    def entries(self, path: str) -> dict[str, Stat]:
        """See `Storage.entries`."""
        found = {one.path.rpartition("/")[2]: _stat(one) for one in self.client().list_status(f"/{path}")}
        return {name: found[name] for name in sorted(found)}

    def read(self, path: str, start: int, stop: int) -> memoryview:
        """See `Storage.read`."""
        with self.client().read(f"/{path}") as file:
            return memoryview(file.read_range(start, stop - start))


def _stat(found: Any) -> Stat:
    return Stat(-1 if found.isdir else found.length, (str(found.modification_time),), found.isdir)
