"""The functions that the commands need of a broker's room, for both brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from mqindex.cli.options import BrokerOptions

if TYPE_CHECKING:
    from mqindex.cli.printing.formats import Columns
    from mqindex.engines import Engine
    from mqindex.kafka.partition.partition_log import IsolationLevel
    from mqindex.report import Catalogue, RebuildReport, RepairReport, Report

MOST_HITS = 64  # of a key, by default


@dataclass(frozen=True)
class Question:
    """The arguments of `mqindex query`, for either broker, with their defaults."""

    keys: tuple[str, ...] = ()
    topic: str | None = None
    begin: int = 0
    end: int | None = None
    max_num: int = MOST_HITS
    messages: bool = False
    exact: bool = False
    offsets: tuple[str, ...] = ()
    timestamps: tuple[str, ...] = ()
    boundary: str | None = None
    csv: bool = False

    @property
    def is_of_keys(self) -> bool:
        """Whether anything was given that is for RocketMQ's keys only."""
        return Question(offsets=self.offsets, timestamps=self.timestamps, csv=self.csv) != self


@dataclass(frozen=True)
class Listing:
    """What `mqindex dump` prints. `damage` collects sentences about what cannot be read."""

    records: bool
    isolation: IsolationLevel | None
    for_people: bool
    damage: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Selection:
    """What `mqindex messages` is asked for, of either broker; `keywords`: those that its `scan` takes, as given."""

    topic: str | None
    queue_ids: tuple[int, ...]
    partitions: tuple[str, ...]
    begin: int | None
    end: int | None
    keys: tuple[str, ...] | None
    tags: str | None
    offset: int | None
    isolation: IsolationLevel | None
    columns: list[str] | None
    cache: str | bool | None
    decode: bool = False


class Scanned(Protocol):
    """The answer of a `scan`, of either broker."""

    @property
    def damage(self) -> Sequence[Any]: ...
    @property
    def expired(self) -> Sequence[str]: ...
    def empty(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def close(self) -> None: ...


class Health(Protocol):
    """What `report` gives, for both brokers."""

    @property
    def verify(self) -> Report: ...
    @property
    def ok(self) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...


class Broker(Protocol):
    """The functions that the commands need of a broker's module; `options` are those of the command line."""

    LISTED: str  # by `info --all`

    def facts(self, kind: str, path: str, options: BrokerOptions) -> dict[str, Any]:
        """What `info` prints."""

    def screen(self, facts: dict[str, Any]) -> None:
        """Print the first screen of facts that have a `glance`."""

    def columns(self, kind: str, path: str, listing: Listing, options: BrokerOptions) -> Iterator[Columns]:
        """What `dump` prints."""

    def messages(self, path: str, selection: Selection, options: BrokerOptions) -> Scanned:
        """What `messages` prints."""

    def other_topics(self, kind: str, path: str, topic: str | None) -> str:
        """What to say where no message was found: the topics that there are, if this is none of them."""

    def shown(self) -> tuple[str, ...]:
        """The columns of messages for people."""

    def query(self, kind: str, path: str, question: Question, options: BrokerOptions, *, as_json: bool) -> int:
        """Print the answers; returns how many were found."""

    def verify(
        self,
        kind: str,
        path: str | Sequence[str],
        options: BrokerOptions,
        *,
        deep: bool,
        cache: str | bool | None,
        engine: Engine,
    ) -> Report:
        """The report of `verify`."""

    def report(self, path: str, options: BrokerOptions, *, deep: bool, show_keys: bool, engine: Engine) -> Health:
        """The health of a store, a partition or a log dir."""

    def zones(self, cache: str | bool | None) -> dict[str, Any]:
        """What the library's `rebuild` takes of `--cache`."""

    def keywords(self, path: str | None, options: BrokerOptions, parts: list[str] | None) -> dict[str, Any]:
        """The arguments of the library's `rebuild` and `repair`; `Trouble`: the command line, or PATH, does not fit."""

    def catalogue(self) -> Catalogue:
        """What each kind of finding means."""


class Library(Protocol):
    """What the packages of both brokers have in common."""

    def rebuild(
        self, path: str | Sequence[str], out: str, *, overwrite: bool, engine: Engine, **options: Any
    ) -> RebuildReport: ...
    def repair(self, path: str, *, deep: bool, dry_run: bool, engine: Engine, **options: Any) -> RepairReport: ...
    def undo_repair(self, path: str, backup: str, *, dry_run: bool) -> RepairReport: ...
