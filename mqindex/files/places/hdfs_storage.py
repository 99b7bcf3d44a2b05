"""HDFS, by hdfs-native: no Java."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from mqindex._needs import needing
from mqindex.files.places.storage import OfClient, Stat

_BLOCK = 8 << 20  # bytes
# Of a name node with a port there is no other one: it is waited for for seconds, not for three minutes.
_OF_ONE = {"dfs.client.failover.max.attempts": 6, "dfs.client.failover.sleep.max.millis": 1000}


class HdfsStorage(OfClient):
    """A name node, as hdfs-native's `Client` takes it; without one in the URL, that of Hadoop's configuration."""

    def _connect(self) -> Any:
        with needing(f"{self._root} needs hdfs-native: pip install 'mqindex[remote]'", "hdfs_native"):
            native: Any = importlib.import_module("hdfs_native")
        options = {**(_OF_ONE if ":" in self._given[1] else {}), **self._options}
        return native.Client(self._root if self._given[1] else None, {name: str(v) for name, v in options.items()})

    def stat(self, path: str) -> Stat:
        """See `Storage.stat`."""
        return _stat(self.client().get_file_info(f"/{path}"))

    def entries(self, path: str) -> dict[str, Stat]:
        """See `Storage.entries`."""
        found = {one.path.rpartition("/")[2]: _stat(one) for one in self.client().list_status(f"/{path}")}
        return {name: found[name] for name in sorted(found)}

    def tree(self, path: str) -> dict[str, Stat]:
        """See `Storage.tree`."""
        return {one.path.strip("/"): _stat(one) for one in self.client().list_status(f"/{path}", recursive=True)}

    def read(self, path: str, start: int, stop: int, etag: str = "") -> memoryview:
        """See `Storage.read`."""
        with self.client().read(f"/{path}") as file:
            return memoryview(file.read_range(start, stop - start))

    renames = True

    def put(self, path: str, data: bytes, *, new: bool = False) -> None:
        """See `Storage.put`."""
        with self.client().create(f"/{path}", _options(overwrite=not new)) as file:
            file.write(data)

    def upload(self, path: str, local: str) -> None:
        """See `Storage.upload`."""
        with self.client().create(f"/{path}", _options(overwrite=True)) as file, open(local, "rb") as source:
            while some := source.read(_BLOCK):
                file.write(some)

    def move(self, path: str, target: str) -> None:
        """See `Storage.move`: the name node refuses a name that is in use."""
        self.client().rename(f"/{path}", f"/{target}")

    def remove(self, path: str, *, whole: bool = True) -> None:
        """See `Storage.remove`."""
        with contextlib.suppress(FileNotFoundError):
            self.client().delete(f"/{path}", recursive=whole)

    def newest(self, path: str) -> float:
        """See `Storage.newest`."""
        times = [one.modification_time for one in self.client().list_status(f"/{path}", recursive=True)]
        return max(times, default=0) / 1000

    def make_directory(self, path: str) -> None:
        """See `Storage.make_directory`."""
        self.client().mkdirs(f"/{path}", create_parent=True)


def _options(*, overwrite: bool) -> Any:
    native: Any = importlib.import_module("hdfs_native")
    return native.WriteOptions(overwrite=overwrite, create_parent=True)


def _stat(found: Any) -> Stat:
    return Stat(-1 if found.isdir else found.length, str(found.modification_time), directory=found.isdir)
