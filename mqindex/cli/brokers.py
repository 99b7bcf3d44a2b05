"""Which broker a kind of file belongs to: the only place where a command for both brokers chooses."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from mqindex.cli.broker import Broker, Library
from mqindex.cli.kafka import kinds as kafka_kinds
from mqindex.cli.options import BrokerOptions
from mqindex.cli.rocketmq import kinds as rocketmq_kinds

if TYPE_CHECKING:
    from mqindex.html.page import Page

# The kinds of path that each command takes.
HOMES = (rocketmq_kinds.STORE, kafka_kinds.PARTITION, kafka_kinds.LOG_DIR)
REPORTED = (*HOMES, *kafka_kinds.OF_SEGMENT)
VERIFIED = (
    rocketmq_kinds.STORE,
    rocketmq_kinds.INDEX_DIR,
    rocketmq_kinds.INDEX_FILE,
    *HOMES[1:],
    *kafka_kinds.OF_SEGMENT,
)
QUERIED = (
    *VERIFIED[:3],
    kafka_kinds.LOG_DIR,
    kafka_kinds.PARTITION,
    kafka_kinds.SEGMENT,
    kafka_kinds.OFFSET_INDEX,
    kafka_kinds.TIME_INDEX,
)
SCANNED = (*HOMES, rocketmq_kinds.COMMIT_LOG_DIR, rocketmq_kinds.COMMIT_LOG_FILE, kafka_kinds.SEGMENT)
DUMPED = (*rocketmq_kinds.DUMPED, *kafka_kinds.DUMPED)


def unseen_kind(forced: str | None, options: BrokerOptions) -> str:
    """The kind of a path that only a cluster's workers see: `--kind`, else what the options are for."""
    return forced or (kafka_kinds.PARTITION if options.kafka else rocketmq_kinds.STORE)


def broker_of(kind: str) -> Broker:
    """What the shell does with files of this kind."""
    return cast(Broker, importlib.import_module(f"mqindex.cli.{_name(kind)}.actions"))


def library_of(kind: str) -> Library:
    """The package of the broker that has files of this kind."""
    return cast(Library, importlib.import_module(f"mqindex.{_name(kind)}"))


def page_of(kind: str) -> Callable[..., Page]:
    """What makes the page of a report of files of this kind."""
    return cast("Callable[..., Page]", importlib.import_module(f"mqindex.html.{_name(kind)}").page_of)


def _name(kind: str) -> str:
    return "kafka" if kind in kafka_kinds.KINDS else "rocketmq"
