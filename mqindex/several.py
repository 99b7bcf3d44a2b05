"""Several stores, log dirs or partitions rebuilt as one job with one report, each under a name of its own.

The result of each appears below the place that was given as if it had been rebuilt alone: whole or not at all. What is
wrong with one is a finding, and takes nothing from the others.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import announce, require_seen, run_one
from mqindex.engines.together import map_kept, together
from mqindex.errors import MQIndexError, OutputExistsError, reason
from mqindex.files import disk
from mqindex.files.paths import base_name, parent_of
from mqindex.files.places.place import Place
from mqindex.files.results.output_place import require_place
from mqindex.files.rights import as_owner_of
from mqindex.report import Kind, RebuildReport

StrPath = str | os.PathLike[str]

NOT_REBUILT = "not-rebuilt"  # the kind of finding, in both brokers' catalogues

_SUMMED = ("findings", "files", "entries", "units", "messages", "segments", "batches", "bytes", "out_files")
_OF_ONE = (MQIndexError, OSError, ValueError)  # errors that say what is wrong with one store


class Order(Protocol):
    """A frozen dataclass: what is rebuilt, to where."""

    @property
    def path(self) -> str: ...
    @property
    def out(self) -> str: ...
    @property
    def seen(self) -> list[str]:
        """What all machines must see alike."""


AnySurvey = TypeVar("AnySurvey")


@dataclass(frozen=True, slots=True)
class Plan(Generic[AnySurvey]):
    """What a look at the files finds. `needed`: bytes at the output; `said`: the same in words, and what is free."""

    found: AnySurvey
    log_bytes: int
    needed: int
    said: str


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """How one store of a broker is rebuilt.

    `log`: its word for that. `apart`: refuses an order whose output is where its store has files. `begin`: refuses what
    else may be refused, and gives the plan; a stage. `carry_out`: the work. `failed`: of what was not rebuilt.
    """

    log: str
    apart: Callable[[Any], None]
    begin: Callable[[Any], Plan[Any]]
    carry_out: Callable[[Engine, Any, Plan[Any]], RebuildReport]
    failed: Kind


def listed(given: StrPath | Iterable[StrPath]) -> tuple[list[StrPath], bool]:
    """The paths that were given, and whether it was one alone, not in a list."""
    if isinstance(given, (str, bytes, os.PathLike)) or not isinstance(given, Iterable):
        return [given], True
    return list(given), False


def names_of(name: str, paths: Sequence[str]) -> list[str]:
    """A name for each path, by which people know it: what all end with says nothing.

    `ValueError`, naming the argument: nothing tells them apart.

    >>> names_of("store", ["/backup/broker-a/store", "/backup/broker-b/store"])
    ['broker-a', 'broker-b']
    >>> names_of("store", ["/dc1/broker-a/store", "/dc1/broker-b/store", "s3://dc2/broker-a/store"])
    ['dc1-broker-a', 'dc1-broker-b', 'dc2-broker-a']
    """
    split = [[part for part in path.rpartition("://")[2].split("/") if part] for path in paths]
    while len(paths) > 1 and len({parts[-1] if len(parts) > 1 else None for parts in split}) == 1 and len(split[0]) > 1:
        split = [parts[:-1] for parts in split]
    for count in range(1, max(map(len, split), default=0) + 1):
        names = ["-".join(parts[-count:]).replace(":", "-") for parts in split]
        if all(names) and len(set(names)) == len(names):
            return names
    twice = next((path for at, path in enumerate(paths) if path in paths[:at]), None)
    got = "none" if not paths else f"{', '.join(paths)}" if twice is None else f"{twice} twice"
    raise ValueError(f"{name}: expected paths that differ in a name, for that of each result, got {got}")


def rebuild_one(engine: Engine, order: Any, how: Rebuilding) -> RebuildReport:
    """Rebuild what an `Order` says; its errors are the caller's."""
    started = time.perf_counter()
    engine = require_seen(engine, order.seen)
    plan = run_one(engine, how.begin, order, "look at the files")
    announce(engine, f"reads {plan.log_bytes:,} bytes of {how.log}, {plan.said}")
    report = how.carry_out(engine, order, plan)
    report.seconds = time.perf_counter() - started
    return report


def rebuild_each(engine: Engine, orders: Sequence[Any], out: str, how: Rebuilding) -> RebuildReport:
    """Rebuild each of these `Order`s to its own place, one below `out`, which is made."""
    started = time.perf_counter()
    engine = require_seen(engine, [parent_of(out), *(path for one in orders for path in one.seen)])
    for refused in map_kept(engine, how.apart, [replace(one, out=out) for one in orders], name="look at the place"):
        if isinstance(refused, ValueError):
            raise refused  # what cannot be read is said when it is looked at
    made = run_one(engine, _make_home, out, "make the place")
    results: list[RebuildReport | Exception] = []
    try:
        found = map_kept(engine, how.begin, orders, name="look at the files")
        plans = [pair for pair in zip(orders, found, strict=True) if isinstance(pair[1], Plan)]
        _announce(engine, out, [one for one in found if isinstance(one, Plan)])
        with contextlib.nullcontext() if isinstance(out, Place) else as_owner_of(out):
            done = iter(together(engine, partial(_carried_out, how), plans, lambda pair: pair[0].seen))
        results = [one if isinstance(one, Exception) else next(done) for one in found]
    finally:
        if made and not any(isinstance(one, RebuildReport) for one in results):
            run_one(engine, _remove_empty, out, "clean up")
    report = _report(orders, results, how.failed)
    report.seconds = time.perf_counter() - started
    return report


def _carried_out(how: Rebuilding, engine: Engine, pair: tuple[Any, Plan[Any]]) -> RebuildReport:
    started = time.perf_counter()
    report = how.carry_out(engine, *pair)
    report.seconds = time.perf_counter() - started
    return report


def _announce(engine: Engine, out: str, plans: Sequence[Plan[Any]]) -> None:
    """All of them must find room together."""
    if not plans:
        return
    needed, log_bytes = (sum(getattr(one, name) for one in plans) for name in ("needed", "log_bytes"))
    free = run_one(engine, _check_space, (out, needed), "check the free space")
    logs = plural(len(plans), "log")
    announce(engine, f"reads {log_bytes:,} bytes of {logs}, needs about {needed:,} bytes in {out}, where {free}")


def _check_space(item: tuple[str, int]) -> str:
    return disk.check_space(*item)


def _make_home(out: str) -> bool:
    """False: it is there, or needs no making."""
    if isinstance(out, Place) or disk.is_directory(out):
        return False
    if disk.exists(out):
        raise OutputExistsError("the output is no directory", path=out, hint="choose another place")
    require_place(out)
    with as_owner_of(parent_of(out)):
        disk.make_directory(out)
    return True


def _remove_empty(out: str) -> None:
    with as_owner_of(parent_of(out)), contextlib.suppress(OSError):
        disk.remove_directory(out)  # not if there is anything in it


def _report(orders: Sequence[Order], results: Sequence[RebuildReport | Exception], failed: Kind) -> RebuildReport:
    whole = RebuildReport(_above([one.path for one in orders]))
    for order, result in zip(orders, results, strict=True):
        if isinstance(result, Exception):
            if not isinstance(result, _OF_ONE):
                raise result
            finding = failed.finding(order.path, expected=f"a result at {order.out}", got=reason(result))
            result = RebuildReport(order.path, [finding])  # noqa: PLW2901
        whole.stores[base_name(order.out)] = result
        for name in _SUMMED:
            setattr(whole, name, getattr(whole, name) + getattr(result, name))
        whole.fsync_seconds += result.fsync_seconds
    done = [one for one in results if isinstance(one, RebuildReport)]
    whole.settings = {
        name: value for one in done[:1] for name, value in one.settings.items()
        if all(each.settings.get(name) == value for each in done)
    }  # fmt: skip
    return whole


def _above(paths: Sequence[str]) -> str:
    """The directory or the storage that all of them are below."""
    same = itertools.takewhile(
        lambda parts: len({*parts}) == 1, zip(*(path.split("/") for path in paths), strict=False)
    )
    return "/".join(part for part, *_ in same) or "/"
