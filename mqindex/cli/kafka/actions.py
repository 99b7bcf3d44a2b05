"""What the commands do with Kafka's files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mqindex.cli.broker import Question
from mqindex.cli.formats import Columns
from mqindex.cli.kafka.columns import batch_columns, entry_columns, record_columns
from mqindex.cli.kafka.facts import kafka_facts
from mqindex.cli.kafka.kinds import PARTITION, SEGMENT
from mqindex.cli.kafka.target_query import print_answers
from mqindex.cli.options import BrokerOptions
from mqindex.cli.trouble import Trouble

if TYPE_CHECKING:
    from mqindex.engines import Engine
    from mqindex.kafka.partition.partition_log import IsolationLevel
    from mqindex.report import Catalogue, RebuildReport, RepairReport, Report

__all__ = ["catalogue", "columns", "facts", "query", "rebuild", "repair", "undo", "verify"]


def facts(kind: str, path: str, options: BrokerOptions) -> dict[str, Any]:
    """What `info` tells of a log dir, or of something in it."""
    options.partition()
    return kafka_facts(kind, path)


def query(kind: str, path: str, question: Question, options: BrokerOptions, *, as_json: bool) -> int:
    """Print where offsets and times are; how many were found."""
    options.partition()
    if question.is_of_keys:
        raise Trouble(
            "KEY, --topic, --begin, --end and --max-num are for RocketMQ: expected --offset N or --timestamp TIME"
        )
    return print_answers(kind, path, question, as_json=as_json)


def columns(
    kind: str,
    path: str,
    options: BrokerOptions,
    *,
    records: bool,
    isolation: IsolationLevel | None,
    for_people: bool,
    damage: list[str],
) -> Iterator[Columns]:
    """The entries of an index; batches or records of a segment or a partition."""
    options.partition()
    if kind in (SEGMENT, PARTITION):
        told = record_columns if records else batch_columns
        return told(kind, path, isolation=isolation, for_people=for_people, damage=damage)
    if records or isolation is not None:
        option = "--records" if records else "--isolation-level"
        raise Trouble(f"{option} is for segments and partitions: an index holds no record")
    return entry_columns(kind, path)


def verify(kind: str, path: str, options: BrokerOptions, *, deep: bool, engine: Engine) -> Report:
    """Check the indexes of a partition or of a log dir, or one file of a segment."""
    from mqindex import kafka

    return kafka.verify(path, deep=deep, engine=engine, **options.partition())


def rebuild(
    path: str, out: str, options: BrokerOptions, *, parts: list[str] | None, overwrite: bool, engine: Engine
) -> RebuildReport:
    """Build the indexes of a partition, or of a log dir, anew."""
    from mqindex import kafka

    _require_no_parts(parts)
    return kafka.rebuild(path, out, overwrite=overwrite, engine=engine, **options.partition())


def repair(
    path: str, options: BrokerOptions, *, parts: list[str] | None, deep: bool, dry_run: bool, engine: Engine
) -> RepairReport:
    """Bring back what the indexes of a partition, or of a log dir, lack."""
    from mqindex import kafka

    _require_no_parts(parts)
    return kafka.repair(path, deep=deep, dry_run=dry_run, engine=engine, **options.partition())


def undo(path: str, backup: str) -> RepairReport:
    """Put back what a repair moved to its backups."""
    from mqindex import kafka

    return kafka.undo_repair(path, backup)


def catalogue() -> Catalogue:
    """What each kind of finding means."""
    from mqindex.kafka.catalogue import CATALOGUE

    return CATALOGUE


def _require_no_parts(parts: list[str] | None) -> None:
    if parts is not None:
        raise Trouble("--parts is for RocketMQ's stores: the indexes of a Kafka partition are built together")
