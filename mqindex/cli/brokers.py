"""Whose files a kind is of: the one place where a command for both brokers parts ways."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from mqindex.cli import kafka_kinds, rocketmq_kinds
from mqindex.cli.formats import Columns
from mqindex.cli.options import BrokerOptions

if TYPE_CHECKING:
    from mqindex.engines import Engine
    from mqindex.kafka.partition_log import IsolationLevel
    from mqindex.report import Kind, RebuildReport, RepairReport, Report

__all__ = ["DUMPED", "HOMES", "MOST_HITS", "QUERIED", "VERIFIED", "Broker", "Question", "broker_of", "unseen_kind"]

MOST_HITS = 64  # of a key, where it is not said

# The kinds of path that each command takes.
HOMES = (rocketmq_kinds.STORE, kafka_kinds.PARTITION, kafka_kinds.LOG_DIR)
VERIFIED = (
    rocketmq_kinds.STORE,
    rocketmq_kinds.INDEX_DIR,
    rocketmq_kinds.INDEX_FILE,
    *HOMES[1:],
    *kafka_kinds.OF_SEGMENT,
)
QUERIED = (
    *VERIFIED[:3],
    kafka_kinds.PARTITION,
    kafka_kinds.SEGMENT,
    kafka_kinds.OFFSET_INDEX,
    kafka_kinds.TIME_INDEX,
)
DUMPED = (*rocketmq_kinds.DUMPED, *kafka_kinds.DUMPED)


@dataclass(frozen=True)
class Question:
    """What `mqindex query` was asked, of either broker; the limits are as one may leave them out."""

    keys: tuple[str, ...] = ()
    topic: str | None = None
    begin: int = 0
    end: int | None = None
    max_num: int = MOST_HITS
    offsets: tuple[str, ...] = ()
    timestamps: tuple[str, ...] = ()

    @property
    def is_of_keys(self) -> bool:
        """Whether anything was said that only RocketMQ's keys have."""
        return Question(offsets=self.offsets, timestamps=self.timestamps) != self


class Broker(Protocol):
    """What the commands ask of a broker's module; `options` are those of the command line."""

    def facts(self, kind: str, path: str, options: BrokerOptions) -> dict[str, Any]:
        """What `info` tells."""

    def columns(
        self,
        kind: str,
        path: str,
        options: BrokerOptions,
        *,
        records: bool,
        isolation: IsolationLevel | None,
        for_people: bool,
        damage: list[str],
    ) -> Iterator[Columns]:
        """What `dump` prints; sentences about what cannot be read are appended to `damage`."""

    def query(self, kind: str, path: str, question: Question, options: BrokerOptions, *, as_json: bool) -> int:
        """Print the answers, and say how many were found."""

    def verify(self, kind: str, path: str, options: BrokerOptions, *, deep: bool, engine: Engine) -> Report:
        """The report of `verify`."""

    def rebuild(
        self, path: str, out: str, options: BrokerOptions, *, parts: list[str] | None, overwrite: bool, engine: Engine
    ) -> RebuildReport:
        """The report of `rebuild`."""

    def repair(
        self,
        path: str,
        options: BrokerOptions,
        *,
        parts: list[str] | None,
        deep: bool,
        dry_run: bool,
        engine: Engine,
    ) -> RepairReport:
        """The report of `repair`."""

    def undo(self, path: str, backup: str) -> RepairReport:
        """The report of `repair --undo`."""

    def catalogue(self) -> Mapping[str, Kind]:
        """What each kind of finding means."""


def unseen_kind(forced: str | None, options: BrokerOptions) -> str:
    """What a path is taken for that only a cluster's workers see: as was said, else as the options tell."""
    return forced or (kafka_kinds.PARTITION if options.kafka else rocketmq_kinds.STORE)


def broker_of(kind: str) -> Broker:
    """The module of the broker that has files of this kind."""
    name = "kafka" if kind in kafka_kinds.KINDS else "rocketmq"
    return cast(Broker, importlib.import_module(f"mqindex.cli.{name}"))
