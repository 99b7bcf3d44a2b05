"""Look-ups in index files on an S3 server of this machine: cold, and with their pages kept here."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from bench.contenders.keys import arrow_keys
from bench.contenders.places import place_at, served
from bench.contenders.result import Result, repeat
from mqindex.files.places import paged_file
from mqindex.files.places.object_storage import ObjectStorage
from mqindex.files.places.page_cache import PageCache
from mqindex.rocketmq import IndexFile, IndexService

__all__ = ["run"]

_ALL = 1000
_QUIET = 0.3  # s without another request, after which those that wait are one round


def run(
    *, root: str, hit: str, keys: str, count: int, again: int, slots: int, entries: int, scratch: str, **spec: Any
) -> Result:
    """Cold keys over all files, counted; then many in one of them, here and there, where its pages are kept here."""
    result, names = Result(), sorted(os.listdir(os.path.join(root, "index")))
    given = {"hash_slot_num": slots, "index_num": entries}
    present = [f"T{i % len(names)}#{key}" for i, key in enumerate(arrow_keys(hit).to_pylist()[:count])]
    below = [f"index/{name}" for name in names]
    below += [f"mqindex-index/{name}" for name in os.listdir(os.path.join(root, "mqindex-index"))]
    kept = os.path.join(scratch, "pages")
    os.mkdir(kept)
    with served(scratch, root, below) as (url, options):
        size = sum(os.path.getsize(os.path.join(root, "index", name)) for name in names)
        with IndexService.open(f"{url}/index", storage_options=options, **given) as service, _counting() as asked:
            result.answer(cold=int(np.sum(service.query_offsets(None, present).values)))
        result.add("fetched", asked["bytes"] / size, 1)
        result.add("rounds", asked["rounds"], 1)
        place, many = place_at(f"{url}/index/{names[0]}", options), arrow_keys(keys)[:again]
        place.storage.pages = PageCache(kept)
        with (
            IndexFile.open(place, **given) as there,
            IndexFile.open(os.path.join(root, "index", names[0]), **given) as here,
        ):
            for keep in itertools.chain([False], repeat(**spec)):  # lazily: it yields for as long as it shall
                for measure, file in (("local", here), ("again", there)):
                    with result.timed(measure, len(many), keep=keep):
                        found = file.select_phy_offsets(many, topic="T0")
                    if result.answers.setdefault("again", int(np.sum(found.values))) != int(np.sum(found.values)):
                        raise RuntimeError(f"{measure}: another answer")
    return result


@contextmanager
def _counting() -> Iterator[dict[str, int]]:
    """The bytes that are read of index files, and rounds of requests: each waits until no other comes."""
    asked, last, changed, read = {"bytes": 0, "rounds": 0}, [0.0], threading.Condition(), ObjectStorage.read

    def counted(self: ObjectStorage, path: str, start: int, stop: int, *rest: Any) -> Any:
        with changed:
            asked["bytes"] += (stop - start) * ("/index/" in path)
            last[0], own = time.monotonic(), asked["rounds"]
            while asked["rounds"] == own:
                changed.wait(_QUIET / 5)
                if asked["rounds"] == own and time.monotonic() - last[0] > _QUIET:
                    asked["rounds"] += 1
                    changed.notify_all()
        return read(self, path, start, stop, *rest)

    with (
        mock.patch.object(ObjectStorage, "read", counted),
        mock.patch.object(paged_file, "AT_ONCE", _ALL),  # else those that only wait for a thread count as a round
    ):
        yield asked
