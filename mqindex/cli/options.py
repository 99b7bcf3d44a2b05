"""The options that several commands share, and what they become for the library."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from mqindex.cli.completion import Completed
from mqindex.cli.group import COMMANDS
from mqindex.cli.times import TIME
from mqindex.files.paths import absolute
from mqindex.files.places.place import Place, place_of

if TYPE_CHECKING:
    from mqindex._settings import Setting
    from mqindex.engines import Engine
    from mqindex.kafka.options import PartitionArguments
    from mqindex.rocketmq.options import StoreArguments

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]


_OF_STORE = ("config", "commitlog", "hash_slot_num", "index_num", "broker_version")
_PATHS = ("config", "commitlog")
_PLACES = ("path", "paths", "store", "index", "out", "commitlog")
_SECRET = re.compile(r"(secret|token|password|sas|_key|base64)(?!.*_(id|file|uri|url|endpoint)$)")
_OF_PARTITION = ("kafka_version", "index_interval_bytes", "max_index_size")


class SettingOption(click.Option):
    """An option that stands for a broker's setting: its words and its least number are those of the setting's row.

    The row is read when it is wanted, so that files of one broker need nothing of the other's.
    """

    def __init__(self, *arguments: Any, broker: str, **attributes: Any) -> None:
        self._broker = broker
        super().__init__(*arguments, **attributes)

    @property
    def _row(self) -> Setting[Any]:
        rows = importlib.import_module(f"mqindex.{self._broker.lower()}.settings").SETTINGS.values()
        return cast("Setting[Any]", next(row for row in rows if row.argument == self.name))

    @property
    def help(self) -> str:
        """As of the row."""
        return self._row.help(self._broker, "; repeat it for each" if self.multiple else "")

    @help.setter
    def help(self, text: str | None) -> None:
        """None was given."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        least = self._row.least
        return {**super().get_help_extra(ctx), **({} if least is None else {"range": f"x>={least}"})}

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        if value is None or self.multiple:
            return super().type_cast_value(ctx, value)
        return click.IntRange(self._row.least)(value, self, ctx)


class BrokerOptions(NamedTuple):
    """The options of both brokers on the command line, before it is known whose files PATH holds."""

    rocketmq: StoreArguments
    kafka: PartitionArguments

    def store(self) -> StoreArguments:
        """The options for a RocketMQ store; those of Kafka must not have been given."""
        self._refuse(self.kafka, "Kafka", "RocketMQ")
        return self.rocketmq

    def partition(self) -> PartitionArguments:
        """The options for Kafka's partitions; those of RocketMQ must not have been given."""
        self._refuse(self.rocketmq, "RocketMQ", "Kafka")
        return self.kafka

    def words(self) -> list[str]:
        """The given options, as they are written on a command line, with absolute paths."""
        words = []
        for name, value in {**self.rocketmq, **self.kafka}.items():
            for one in value if isinstance(value, list) else [value]:
                words += [] if one is None else [_flag(name), absolute(cast(str, one)) if name in _PATHS else str(one)]
        return words

    @staticmethod
    def _refuse(options: Mapping[str, object], owner: str, found: str) -> None:
        for name, value in options.items():
            if value is not None:
                raise click.UsageError(
                    f"{_flag(name)} is an option for {owner}; PATH holds files of {found}",
                    click.get_current_context(silent=True),
                )


def _flag(name: str) -> str:
    return "--broker-conf" if name == "config" else f"--{name.replace('_', '-')}"


def subcommand(name: str, *examples: str, here: str | None = None) -> Callable[[Function], click.Command]:
    """A subcommand; its one-line help is the root's, its examples close its help. `here`: as `Completed` has it."""
    epilog = "\n\n".join(f"Example: {one}" for one in examples)
    return click.command(name, cls=Completed, short_help=COMMANDS[name], epilog=epilog, here=here)


def path_options(*kinds: str) -> Decorator:
    """What every command on a PATH takes: `--kind` as `kind`, those of both brokers as `options`, `--json`."""
    return _together(_kind_option(*kinds), _broker_options, json_option)


def report_options(*kinds: str) -> Decorator:
    """The same for the commands that give a report, with the `engine` that they run on."""
    return _together(_kind_option(*kinds), engine_options, _broker_options, json_option)


def _together(*decorators: Decorator) -> Decorator:
    return lambda function: functools.reduce(lambda inner, outer: outer(inner), reversed(decorators), function)


def json_option(function: Function) -> Function:
    """`--json`"""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")(function)


def out_file_option(text: str) -> Decorator:
    """`--out FILE`, a new file."""
    return click.option("--out", metavar="FILE", callback=_file_name, help=text)


def _file_name(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value == "-":
        raise click.BadParameter("expected a file, got standard output; a file of that name is ./-")
    return value


def cache_option(of_kafka: str = "", default: str = "the user's cache") -> Decorator:
    """`--cache`: a directory; None: the default; False: none. `of_kafka`: when zone maps of its logs are made."""
    return click.option(
        "--cache",
        metavar="DIR",
        callback=lambda context, option, value: False if value == "none" else value,
        help=f"Where zone maps are kept, which times and topics are where in a log{of_kafka}; none: nowhere.  "
        f"[default: {default}]",
    )


def _kind_option(*kinds: str) -> Decorator:
    return click.option("--kind", type=click.Choice(kinds), help="What PATH is, where content and place do not say.")


def parts_option(function: Function) -> Function:
    """`--parts`: a list or None."""
    return click.option(
        "--parts",
        metavar="PART,...",
        callback=lambda context, option, value: None if value is None else [part.strip() for part in value.split(",")],
        help="RocketMQ: what to build, of index and consumequeue.  [default: both]",
    )(function)


def _broker_options(function: Function) -> Function:
    """The options of both brokers, gathered into one argument `options`; the kind of PATH decides which may be used."""

    @click.option("--kafka-version", metavar="V", help="Kafka's version; up to 1.1 other offsets are indexed.")
    @click.option("--index-interval-bytes", cls=SettingOption, broker="Kafka", type=int, metavar="N")
    @click.option("--max-index-size", cls=SettingOption, broker="Kafka", type=int, metavar="N")
    @store_options
    @functools.wraps(function)
    def gathered(*arguments: Any, options: StoreArguments, **rest: Any) -> Any:
        values = {name: rest.pop(name) for name in _OF_PARTITION}
        kafka = cast("PartitionArguments", {name: value for name, value in values.items() if value is not None})
        return function(*arguments, options=BrokerOptions(options, kafka), **rest)

    return gathered


def _storage_options(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str] | None:
    """The pairs by name; None: none were given. Others of this machine see a command line, so it has no secrets."""
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise click.BadParameter("expected NAME=VALUE, as region=eu-central-1")
        if _SECRET.search(name.lower()):
            raise click.BadParameter(
                f"{name} is a secret, and everybody sees a command line: expected it in the environment or in the "
                "configuration of its provider, as AWS_SECRET_ACCESS_KEY"
            )
        found[name] = value
    return found or None


STORAGE_OPTION = click.option(
    "--storage-option", "storage_options", multiple=True, metavar="NAME=VALUE", callback=_storage_options,
    help="Of a URL's storage: endpoint=..., region=...; repeat it. Secrets are read from the environment.",
)  # fmt: skip


def store_options(function: Function) -> Function:
    """The options of a RocketMQ store, gathered into one argument `options`."""

    @click.option(
        "--commitlog", cls=SettingOption, broker="RocketMQ", multiple=True, metavar="DIR",
        callback=lambda context, option, value: list(value) or None,
    )  # fmt: skip
    @click.option(
        "--broker-conf",
        "config",
        metavar="FILE",
        help="RocketMQ's broker.conf: what it sets, else a broker's defaults.",
    )
    @click.option("--broker-version", metavar="V", help="RocketMQ's version: from 5.4 on TAGS are indexed too.")
    @click.option("--hash-slot-num", cls=SettingOption, broker="RocketMQ", type=int, metavar="N")
    @click.option("--index-num", cls=SettingOption, broker="RocketMQ", type=int, metavar="N")
    @STORAGE_OPTION
    @functools.wraps(function)
    def gathered(*arguments: Any, storage_options: dict[str, str] | None = None, **rest: Any) -> Any:
        placed = _at_places(rest, storage_options)
        options = {name: placed.pop(name) for name in _OF_STORE}
        return function(*arguments, options=cast("StoreArguments", options), **placed)

    return gathered


def storage_option(function: Function) -> Function:
    """`--storage-option` alone: arguments that are URLs get their storage."""

    @STORAGE_OPTION
    @functools.wraps(function)
    def gathered(*arguments: Any, storage_options: dict[str, str] | None = None, **rest: Any) -> Any:
        return function(*arguments, **_at_places(rest, storage_options))

    return gathered


def _at_places(arguments: dict[str, Any], storage_options: dict[str, str] | None) -> dict[str, Any]:
    """The arguments, those that are paths with their storage."""
    return {name: placed(value, storage_options) if name in _PLACES else value for name, value in arguments.items()}


def placed(given: Any, storage_options: dict[str, str] | None) -> Any:
    """A path or several; those that are URLs with their storage."""
    if given is None or isinstance(given, str):
        return given and place_of(given, storage_options)
    return type(given)(place_of(one, storage_options) for one in given)


class EngineOptions:
    """Where the work runs. `open()` gives the engine for the time of a `with`, its progress on a terminal shown."""

    def __init__(self, engine: str, workers: int | None, master: str | None, *, verbose: bool = False) -> None:
        if (master is not None or verbose) and engine != "spark":
            flag = "--master" if master is not None else "--verbose"
            raise click.UsageError(f"{flag} is for --engine spark", click.get_current_context(silent=True))
        if master is not None and workers is not None:
            raise click.UsageError(
                "--workers counts processors of this machine; with --master the cluster decides",
                click.get_current_context(silent=True),
            )
        self.engine, self.workers, self.master, self.verbose = engine, workers, master, verbose

    def sees(self, path: str) -> bool:
        """Whether this machine can see what is at `path`: not where only the cluster's workers do."""
        elsewhere = self.master is not None and not self.master.startswith("local")
        return not elsewhere or isinstance(path, Place) or os.path.exists(path)

    @contextlib.contextmanager
    def open(self) -> Iterator[Engine]:
        """The engine, with a progress bar on a terminal."""
        from mqindex.cli.printing.progress import progress_bars

        if self.engine == "spark":
            from mqindex.spark import SparkEngine
            from mqindex.spark.session import opened

            master = f"local[{self.workers or '*'}]" if self.master is None else self.master
            with opened(master, verbose=self.verbose) as spark, progress_bars() as show:
                yield SparkEngine(spark, progress=show)
        else:
            from mqindex.engines import LocalEngine

            with progress_bars() as show:
                yield LocalEngine(self.workers, progress=show)


def engine_options(function: Function) -> Function:
    """`--engine`, `--workers`, `--master`, `--verbose`, gathered into one argument `engine`."""

    @click.option(
        "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True,
        help="Threads of this process, or Spark tasks.",
    )  # fmt: skip
    @click.option("--workers", type=click.IntRange(1), metavar="N", help="Processors to use.  [default: all]")
    @click.option("--master", metavar="URL", help="Spark's master; sc:// for Spark Connect.  [default: local[*]]")
    @click.option("-v", "--verbose", is_flag=True, help="Let Spark write its own warnings too.")
    @functools.wraps(function)
    def gathered(
        *arguments: Any, engine: str, workers: int | None, master: str | None, verbose: bool, **rest: Any
    ) -> Any:
        return function(*arguments, engine=EngineOptions(engine, workers, master, verbose=verbose), **rest)

    return gathered


def time_option(flag: str, text: str, *, default: int | None = None) -> Decorator:
    """A time, in every form that `mqindex.cli.times` takes."""
    return click.option(flag, type=TIME, default=default, help=text)
