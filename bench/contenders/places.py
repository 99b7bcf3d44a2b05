"""A rebuild from an S3 server of this machine to it, without and with Spark, beside the bare reading of the log.

Bytes are not signed over, as is usual where a connection is encrypted.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.contenders.result import Result, repeat
from mqindex.engines import Engine, LocalEngine
from mqindex.files.few_threads import for_each
from mqindex.files.places.place import Place, place_of
from mqindex.files.places.remote_file import AT_ONCE, REQUEST
from mqindex.report import RebuildReport
from mqindex.rocketmq import rebuild as rebuild_store

if TYPE_CHECKING:
    from tests.peer.places.servers import Server

__all__ = ["counted", "hdfs", "rebuild", "spark", "task"]


def rebuild(*, store: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """By threads; `read`: nothing but ranged requests for every byte of the log; `write`: the result, only uploaded."""
    return _run(store, slots, entries, scratch, spec, LocalEngine(workers=2), bare=True)


def spark(*, store: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """By Spark `local[2]`, in a session that has run before; `local`: the same session on files of this machine."""
    from bench.contenders.spark_jobs import session
    from mqindex.spark import SparkEngine

    with session(scratch) as running:
        return _run(store, slots, entries, scratch, spec, SparkEngine(running), bare=False)


def hdfs(*, store: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """By a standalone Spark of two workers from an HDFS to it; `local`: the same workers on files that all of them see.

    The machine's processors are theirs and the HDFS's.
    """
    from bench.contenders.spark_jobs import session
    from mqindex.spark import SparkEngine
    from tests.peer.places.servers import Hdfs
    from tests.support.spark_cluster import spark_environment, standalone

    os.environ.update(spark_environment())
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-Xshare:auto")
    home = Path(scratch) / "cluster"
    home.mkdir()
    with standalone(home, "2g", lambda _: []) as (master, _), session(scratch, master=master) as running:
        return _run(store, slots, entries, scratch, spec, SparkEngine(running), bare=False, kind=Hdfs)


def counted(*, store: str, slots: int, entries: int, scratch: str) -> Result:
    """Not timed: every request and byte of a rebuild, counted by what stands between it and the server."""
    from tests.support.fault_proxy import FaultProxy

    result = Result()
    with served(scratch, store) as (url, options), FaultProxy(int(options["endpoint"].rpartition(":")[2])) as proxy:
        engine, log_bytes = LocalEngine(workers=2), sum(place.stat().size for place in _log(url, options))
        given = {**_given(slots, entries, engine), "storage_options": {**options, "endpoint": proxy.url}}
        report = rebuild_store(url, f"{url}-out", **given)
        result.add("requests", proxy.requests.total(), 1)
        result.add("log_read", proxy.bytes["GET range"] / log_bytes, 1)
        result.answer(messages=report.messages, entries=report.entries, files=_checked(report, options))
    return result


def task(*, store: str, slots: int, entries: int, scratch: str) -> Result:
    """Not timed: splits of 64 MiB, one after the other, for the memory that one takes."""
    result = Result()
    with served(scratch, store) as (url, options):
        given = {**_given(slots, entries, LocalEngine(workers=1)), "storage_options": options}
        report = rebuild_store(url, f"{url}-out", split_size=64 << 20, **given)
        result.answer(messages=report.messages, entries=report.entries)
    return result


def _run(
    store: str,
    slots: int,
    entries: int,
    scratch: str,
    spec: dict[str, Any],
    engine: Engine,
    *,
    bare: bool,
    kind: type[Server] | None = None,
) -> Result:
    result, given = Result(), _given(slots, entries, engine)
    with served(scratch, store, kind=kind) as (url, options):
        log = _log(url, options)
        log_bytes = sum(place.stat().size for place in log)
        ready = os.path.join(scratch, "ready")
        if bare:
            rebuild_store(store, ready, **given)
        for number, keep in enumerate(repeat(**spec)):
            if bare:
                with result.timed("read", log_bytes, keep=keep):
                    _read(log)
                with result.timed("write", log_bytes, keep=keep):
                    _write(ready, f"{url}-ready-{number}", options)
            else:
                with result.timed("local", log_bytes, keep=keep):
                    rebuild_store(store, os.path.join(scratch, f"out-{number}"), **given)
            with result.timed("remote", log_bytes, keep=keep):
                report = rebuild_store(url, f"{url}-out-{number}", storage_options=options, **given)
        result.answer(messages=report.messages, entries=report.entries, files=_checked(report, options))
    return result


def _given(slots: int, entries: int, engine: Engine) -> dict[str, Any]:
    return {"parts": ("index",), "hash_slot_num": slots, "index_num": entries, "engine": engine}


def _log(url: str, options: dict[str, Any]) -> list[Place]:
    return [place_at(f"{url}/commitlog/{name}", options) for name in place_at(f"{url}/commitlog", options).entries()]


def place_at(url: str, options: dict[str, Any]) -> Place:
    place = place_of(url, options)
    assert isinstance(place, Place)
    return place


def _read(log: list[Place]) -> None:
    def read(one: tuple[Place, int, int]) -> None:
        place, at, size = one
        place.read(at, min(at + REQUEST, size))

    sizes = [(place, place.stat().size) for place in log]
    for_each(read, [(place, at, size) for place, size in sizes for at in range(0, size, REQUEST)], AT_ONCE)


def _write(result: str, url: str, options: dict[str, Any]) -> None:
    for directory, _, names in os.walk(result):
        for name in names:
            place = place_at(f"{url}/{name}", options)
            place.storage.upload(place.path, os.path.join(directory, name))


@contextmanager
def served(
    scratch: str, store: str, below: list[str] | None = None, *, kind: type[Server] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A server, of S3 unless another kind is asked for, that has these files of the store; None: its log."""
    if below is None:
        below = [f"commitlog/{name}" for name in sorted(os.listdir(os.path.join(store, "commitlog")))]
    from tests.peer.places.servers import S3

    home = Path(scratch) / "server"
    home.mkdir()
    server = (kind or S3)(home)
    if isinstance(server, S3):
        server.options["unsigned_payload"] = True
    try:
        for name in below:
            place = place_at(f"{server.url}/store/{name}", server.options)
            place.storage.upload(place.path, os.path.join(store, name))
        yield f"{server.url}/store", server.options
    finally:
        server.close()


def _checked(report: RebuildReport, options: dict[str, Any]) -> str:
    crc = 0
    for path in report.out_files:
        place = place_at(str(path), options)
        for at in range(0, size := place.stat().size, REQUEST):
            crc = zlib.crc32(place.read(at, min(at + REQUEST, size)), crc)
    return f"{len(report.out_files)}:{crc:08x}"
