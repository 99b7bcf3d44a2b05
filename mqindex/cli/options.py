"""The options that several commands share, and what they become for the library."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict

import click

from mqindex.cli.group import COMMANDS

if TYPE_CHECKING:
    from mqindex.engines import Engine

__all__ = [
    "EngineOptions",
    "StoreOptions",
    "engine_options",
    "json_option",
    "kind_option",
    "parts_option",
    "store_options",
    "subcommand",
    "time_option",
]

Function = Callable[..., Any]


class StoreOptions(TypedDict):
    """Keyword arguments of everything that opens a store."""

    config: str | None
    commitlog: list[str] | None
    hash_slot_num: int | None
    index_num: int | None
    broker_version: str | None


def subcommand(name: str, example: str) -> Callable[[Function], click.Command]:
    """A subcommand; its one-line help is the root's, its example closes its help."""
    return click.command(name, short_help=COMMANDS[name], epilog=f"Example: {example}")


def json_option(function: Function) -> Function:
    """`--json`"""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")(function)


def kind_option(*kinds: str) -> Callable[[Function], Function]:
    """`--kind`, one of those that the command takes."""
    return click.option("--kind", type=click.Choice(kinds), help="What PATH is, where content and place do not tell.")


def parts_option(function: Function) -> Function:
    """`--parts`: a list or None."""
    return click.option(
        "--parts",
        metavar="PART,...",
        callback=lambda context, option, value: None if value is None else [part.strip() for part in value.split(",")],
        help="What to build, of index and consumequeue.  [default: both]",
    )(function)


def store_options(function: Function) -> Function:
    """The store options, gathered into one argument `options`."""

    @click.option(
        "--commitlog", "commitlog", multiple=True, metavar="DIR",
        help="Where the commit log is; repeat it for several directories.  [default: STORE/commitlog]",
    )  # fmt: skip
    @click.option("--hash-slot-num", type=click.IntRange(1), metavar="N", help="The broker's maxHashSlotNum.")
    @click.option("--index-num", type=click.IntRange(1), metavar="N", help="The broker's maxIndexNum.")
    @click.option("--broker-version", metavar="V", help="The broker's version: from 5.4 on TAGS are indexed too.")
    @click.option("--broker-conf", metavar="FILE", help="A broker.conf to take these settings from.")
    @functools.wraps(function)
    def gathered(
        *arguments: Any,
        commitlog: tuple[str, ...],
        hash_slot_num: int | None,
        index_num: int | None,
        broker_version: str | None,
        broker_conf: str | None,
        **rest: Any,
    ) -> Any:
        options = StoreOptions(
            config=broker_conf,
            commitlog=list(commitlog) or None,
            hash_slot_num=hash_slot_num,
            index_num=index_num,
            broker_version=broker_version,
        )
        return function(*arguments, options=options, **rest)

    return gathered


class EngineOptions:
    """Where the work runs. `open()` gives the engine for the time of a `with`, its progress on a terminal shown."""

    def __init__(self, engine: str, workers: int | None, master: str | None) -> None:
        if master is not None and engine != "spark":
            raise click.UsageError("--master is for --engine spark", click.get_current_context(silent=True))
        if master is not None and workers is not None:
            raise click.UsageError(
                "--workers counts processors of this machine; with --master the cluster decides",
                click.get_current_context(silent=True),
            )
        self.engine, self.workers, self.master = engine, workers, master

    def sees(self, path: str) -> bool:
        """Whether this machine can tell what is at `path`: not where only the cluster's workers see it."""
        elsewhere = self.master is not None and not self.master.startswith("local")
        return not elsewhere or os.path.exists(path)

    @contextlib.contextmanager
    def open(self) -> Iterator[Engine]:
        """The engine, with a progress bar where people watch."""
        from mqindex.cli.progress import progress_bars

        if self.engine == "spark":
            from mqindex.spark import SparkEngine
            from mqindex.spark.session import get_or_create

            spark = get_or_create(self.master or f"local[{self.workers or '*'}]")
            try:
                with progress_bars() as show:
                    yield SparkEngine(spark, progress=show)
            finally:
                spark.stop()
        else:
            from mqindex.engines import LocalEngine

            with progress_bars() as show:
                yield LocalEngine(self.workers, progress=show)


def engine_options(function: Function) -> Function:
    """`--engine`, `--workers`, `--master`, gathered into one argument `engine`."""

    @click.option(
        "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True,
        help="Threads of this process, or Spark tasks.",
    )  # fmt: skip
    @click.option("--workers", type=click.IntRange(1), metavar="N", help="Processors to use.  [default: all]")
    @click.option("--master", metavar="URL", help="Spark's master; sc:// for Spark Connect.  [default: local[*]]")
    @functools.wraps(function)
    def gathered(*arguments: Any, engine: str, workers: int | None, master: str | None, **rest: Any) -> Any:
        return function(*arguments, engine=EngineOptions(engine, workers, master), **rest)

    return gathered


def time_option(flag: str, default: int, text: str) -> Callable[[Function], Function]:
    """A time: milliseconds since the epoch, or a date and time as `mqindex info` prints it."""
    return click.option(
        flag,
        metavar="TIME",
        help=text,
        callback=lambda context, option, value: default if value is None else _milliseconds(context, option, value),
    )


def _milliseconds(context: click.Context, option: click.Parameter, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        expected = "expected ms since the epoch, or a time such as 2023-11-14T22:13:20.123Z"
        raise click.BadParameter(f"{value!r}: {expected}", context, option) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
