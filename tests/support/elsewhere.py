"""A storage in memory, for what a real server cannot be made to do; the tests of `tests/places` have real ones."""

from __future__ import annotations

import errno
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from mqindex.files.places import place
from mqindex.files.places.object_storage import ObjectStorage
from mqindex.files.places.storage import Stat


@dataclass
class Ways:
    """What the storage does; `ranges`: requests of (path, start, stop)."""

    store: Any = field(default_factory=MemoryStore)
    ranges: list[tuple[str, int, int]] = field(default_factory=list)
    waits: bool = False  # each request takes a moment, until a second one has come
    at_once: int = 0
    most_at_once: int = 0
    failing: Exception | None = None
    short: int = 0  # bytes that are missing from each answer
    forbidden: str = ""  # part of the paths that may not be read
    etags: bool = True  # whether files have them
    told: Stat | None = None  # of each file, instead of what is known
    requests: int = 0
    unanswered: int = 0  # the number of the request that nobody answers, 1 first
    replaced: int = 0  # the number of the request before which its file is replaced by another one, as long

    def of(self, part: str) -> int:
        return sum(part in path for path, _, _ in self.ranges)

    def put(self, url: str, data: bytes) -> None:
        self.store.put(url.removeprefix("memory://"), data)

    def files(self, url: str) -> dict[str, bytes]:
        """All files below a URL, by their names from there."""
        above = f"{url.removeprefix('memory://')}/"
        found = [one["path"] for some in self.store.list(above) for one in some]
        return {path.removeprefix(above): bytes(self.store.get(path).bytes()) for path in found}

    def upload(self, directory: Path) -> str:
        """The URL of all files below a directory, whose name is the last one."""
        url = f"memory://{directory.name}-{random.randrange(1 << 60)}"
        for path in directory.rglob("*"):
            if path.is_file():
                self.put(f"{url}/{path.relative_to(directory)}", path.read_bytes())
        return url


WAYS = Ways()


class MemoryStorage(ObjectStorage):
    """All hosts are one memory, and a URL's host is the first directory."""

    def _connect(self) -> Any:
        return WAYS.store

    def _allow(self, path: str) -> None:
        WAYS.requests += 1
        if WAYS.requests == WAYS.unanswered:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), path)
        if WAYS.forbidden and WAYS.forbidden in path:
            raise PermissionError(path)

    def stat(self, path: str) -> Stat:
        self._allow(path)
        return _told(WAYS.told or super().stat(self._whole(path)))

    def entries(self, path: str) -> dict[str, Stat]:
        self._allow(path)
        return {name: _told(found) for name, found in super().entries(self._whole(path)).items()}

    def tree(self, path: str) -> dict[str, Stat]:
        self._allow(path)
        above = len(self._whole(path)) - len(path)
        return {one[above:]: _told(found) for one, found in super().tree(self._whole(path)).items()}

    def read(self, path: str, start: int, stop: int, etag: str = "") -> memoryview | None:
        self._allow(path)
        WAYS.ranges.append((self._whole(path), start, stop))
        if WAYS.waits:
            WAYS.at_once += 1
            WAYS.most_at_once = max(WAYS.at_once, WAYS.most_at_once)
            for _ in range(100):
                time.sleep(0.002)
                if WAYS.most_at_once > 1:
                    break
            WAYS.at_once -= 1
        if WAYS.failing is not None:
            raise WAYS.failing
        data = None if WAYS.requests == WAYS.replaced else super().read(self._whole(path), start, stop, etag)
        return data and data[: len(data) - WAYS.short]

    def put(self, path: str, data: bytes, *, new: bool = False) -> None:
        self._allow(path)
        super().put(self._whole(path), data, new=new)

    def upload(self, path: str, local: str) -> None:
        self._allow(path)
        super().upload(self._whole(path), local)

    def move(self, path: str, target: str) -> None:
        self._allow(path)
        self._allow(target)
        super().move(self._whole(path), self._whole(target))

    def remove(self, path: str, *, whole: bool = True) -> None:
        self._allow(path)
        super().remove(self._whole(path), whole=whole)

    def newest(self, path: str) -> float:
        return super().newest(self._whole(path))

    def _whole(self, path: str) -> str:
        return f"{self._root.removeprefix('memory://')}/{path}".rstrip("/")


def _told(found: Stat) -> Stat:
    return found if WAYS.etags else found._replace(etag="")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """An empty storage whose URLs begin with `memory://`."""
    WAYS.__init__()  # type: ignore[misc]
    monkeypatch.setitem(place.STORAGES, "memory", f"{__name__}:MemoryStorage")
    return WAYS
