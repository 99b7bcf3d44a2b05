"""A rebuild from an S3 server of this machine to it, without and with Spark, beside the bare reading of the log."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from bench.contenders.result import Result, repeat
from mqindex.engines import Engine, LocalEngine
from mqindex.files.few_threads import for_each
from mqindex.files.places.object_storage import ObjectStorage
from mqindex.files.places.place import Place, place_of
from mqindex.files.places.remote_file import AT_ONCE, REQUEST
from mqindex.report import RebuildReport
from mqindex.rocketmq import rebuild as rebuild_store

__all__ = ["rebuild", "spark"]


def rebuild(*, store: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """By threads; `read`: nothing but ranged requests for every byte of the log."""
    return _run(store, slots, entries, scratch, spec, LocalEngine(workers=2), bare=True)


def spark(*, store: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """By Spark `local[2]`, in a session that has run before; `local`: the same session on files of this machine."""
    from bench.contenders.spark_jobs import session
    from mqindex.spark import SparkEngine

    with session(scratch) as running:
        return _run(store, slots, entries, scratch, spec, SparkEngine(running), bare=False)


def _run(
    store: str, slots: int, entries: int, scratch: str, spec: dict[str, Any], engine: Engine, *, bare: bool
) -> Result:
    result, given = Result(), {"parts": ("index",), "hash_slot_num": slots, "index_num": entries, "engine": engine}
    asked: Counter[str] = Counter()
    with _server(scratch, store) as (url, options):
        log = [_place(f"{url}/commitlog/{name}", options) for name in _place(f"{url}/commitlog", options).entries()]
        log_bytes = sum(place.stat().size for place in log)
        for number, keep in enumerate(repeat(**spec)):
            if bare:
                with result.timed("read", log_bytes, keep=keep):
                    _read(log)
            else:
                with result.timed("local", log_bytes, keep=keep):
                    rebuild_store(store, os.path.join(scratch, f"out-{number}"), **given)
            with _counting(asked), result.timed("remote", log_bytes, keep=keep):
                report = rebuild_store(url, f"{url}-out-{number}", storage_options=options, **given)
        result.answer(messages=report.messages, entries=report.entries, files=_checked(report, options))
    if bare:
        rounds = number + 1
        result.add("requests", asked["requests"] / rounds, 1)
        result.add("log_read", asked["bytes"] / rounds / log_bytes, 1)
    return result


def _place(url: str, options: dict[str, Any]) -> Place:
    place = place_of(url, options)
    assert isinstance(place, Place)
    return place


def _read(log: list[Place]) -> None:
    def read(one: tuple[Place, int, int]) -> None:
        place, at, size = one
        place.read(at, min(at + REQUEST, size))

    sizes = [(place, place.stat().size) for place in log]
    for_each(read, [(place, at, size) for place, size in sizes for at in range(0, size, REQUEST)], AT_ONCE)


@contextmanager
def _server(scratch: str, store: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """An S3 server whose bucket has the store's log."""
    from tests.peer.places.servers import S3

    home = Path(scratch) / "s3"
    home.mkdir()
    server = S3(home)
    try:
        for name in sorted(os.listdir(os.path.join(store, "commitlog"))):
            place = _place(f"{server.url}/store/commitlog/{name}", server.options)
            place.storage.upload(place.path, os.path.join(store, "commitlog", name))
        yield f"{server.url}/store", server.options
    finally:
        server.close()


@contextmanager
def _counting(asked: Counter[str]) -> Iterator[None]:
    """Requests of this process by kind, and bytes that were read."""
    with mock.patch.multiple(ObjectStorage, **{name: _counted(name, asked) for name in _REQUESTS}):
        yield


_REQUESTS = ("stat", "entries", "read", "put", "upload", "move", "remove")


def _counted(name: str, asked: Counter[str]) -> Any:
    call = getattr(ObjectStorage, name)

    def counted(self: ObjectStorage, path: str, *arguments: Any, **options: Any) -> Any:
        asked["requests"] += 1
        if name == "read" and "/commitlog/" in path:
            asked["bytes"] += arguments[1] - arguments[0]
        return call(self, path, *arguments, **options)

    return counted


def _checked(report: RebuildReport, options: dict[str, Any]) -> str:
    crc = 0
    for path in report.out_files:
        place = _place(str(path), options)
        for at in range(0, size := place.stat().size, REQUEST):
            crc = zlib.crc32(place.read(at, min(at + REQUEST, size)), crc)
    return f"{len(report.out_files)}:{crc:08x}"
