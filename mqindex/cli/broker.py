"""What the commands ask of a broker's room, whichever broker's it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mqindex.cli.formats import Columns
from mqindex.cli.options import BrokerOptions

if TYPE_CHECKING:
    from mqindex.engines import Engine
    from mqindex.kafka.partition.partition_log import IsolationLevel
    from mqindex.report import Catalogue, RebuildReport, RepairReport, Report

__all__ = ["MOST_HITS", "Broker", "Question"]

MOST_HITS = 64  # of a key, where it is not said


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

    def catalogue(self) -> Catalogue:
        """What each kind of finding means."""
