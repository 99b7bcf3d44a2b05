"""What the commands do with Kafka's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mqindex.cli.broker import Listing, Question, Selection
from mqindex.cli.kafka.kinds import LOG_DIR, PARTITION, SEGMENT
from mqindex.cli.options import BrokerOptions
from mqindex.cli.printing.output import command_line
from mqindex.cli.trouble import Trouble

if TYPE_CHECKING:
    from mqindex.cli.broker import Scanned
    from mqindex.cli.printing.formats import Columns
    from mqindex.engines import Engine
    from mqindex.kafka import LogDirHealth, Scan
    from mqindex.report import Catalogue, Report

LISTED = "segments and partitions"


def facts(kind: str, path: str, options: BrokerOptions) -> dict[str, Any]:
    """The facts of a log dir, or of something in it."""
    from mqindex.cli.kafka.facts import kafka_facts

    options.partition()
    return kafka_facts(kind, path)


def screen(facts: dict[str, Any]) -> None:
    """Print the first screen of facts that have a glance."""
    from mqindex.cli.kafka.screen import print_screen

    print_screen(facts)


def query(kind: str, path: str, question: Question, options: BrokerOptions, *, as_json: bool) -> int:
    """Print where offsets and times are; how many were found."""
    from mqindex.cli.kafka.target_query import print_answers

    options.partition()
    if question.is_of_keys:
        raise Trouble(
            "KEY, --topic, --begin, --end and --max-num are for RocketMQ: expected --offset N or --timestamp TIME; "
            f"records by key or time: {command_line('messages', path, '--key', 'KEY')}"
        )
    return print_answers(kind, path, question, as_json=as_json)


def columns(kind: str, path: str, listing: Listing, options: BrokerOptions) -> Iterator[Columns]:
    """The entries of an index; batches or records of a segment or a partition."""
    from mqindex.cli.kafka.columns import batch_columns, entry_columns, record_columns

    options.partition()
    if kind in (SEGMENT, PARTITION, LOG_DIR):
        return (record_columns if listing.records else batch_columns)(kind, path, listing)
    if listing.records or listing.isolation is not None:
        option = "--records" if listing.records else "--isolation-level"
        raise Trouble(f"{option} is for segments and partitions: an index holds no record")
    return entry_columns(kind, path, listing.damage)


def messages(path: str, selection: Selection, options: BrokerOptions) -> Scanned:
    """The records of a segment, a partition, or a log dir; or what they say, of a topic that is the broker's own."""
    if selection.decode:
        from mqindex.cli.kafka.decoded import Decoded, decoded_topic

        topic = decoded_topic(path, selection)
        return Decoded(_records(path, replace(selection, columns=None), options), topic, selection.columns)
    return _records(path, selection, options)


def _records(path: str, selection: Selection, options: BrokerOptions) -> Scan:
    from mqindex.kafka import scan

    if selection.queue_ids or selection.tags is not None:
        raise Trouble("--queue-id and --tag are for RocketMQ: expected --topic or --partition")
    partitions = [*selection.partitions, *([] if selection.topic is None else [selection.topic])]
    return scan(
        path, partitions=partitions or None, begin=selection.begin, end=selection.end, start_offset=selection.offset,
        keys=selection.keys, isolation_level=selection.isolation, columns=selection.columns, cache=selection.cache,
        **options.partition(),
    )  # fmt: skip


def other_topics(kind: str, path: str, topic: str | None) -> str:
    """ "": a partition that is not there is an error of `scan`."""
    return ""


def shown() -> tuple[str, ...]:
    """The columns of records for people."""
    return ("timestamp", "topic", "partition", "offset", "key", "value")


def zones(cache: str | bool | None) -> dict[str, Any]:
    """Headers of batches do not have their least times: zone maps come with the records, which no index needs."""
    return {"cache": False if cache is None else cache}


def verify(
    kind: str,
    path: str | Sequence[str],
    options: BrokerOptions,
    *,
    deep: bool,
    cache: str | bool | None,
    engine: Engine,
) -> Report:
    """Check the indexes of a partition, of one or several log dirs, or one file of a segment."""
    from mqindex import kafka

    if isinstance(cache, str) and not deep:
        raise Trouble("--cache is for zone maps, which come with the records: expected --deep")
    return kafka.verify(path, deep=deep, cache=cache, engine=engine, **options.partition())


def report(path: str, options: BrokerOptions, *, deep: bool, show_keys: bool, engine: Engine) -> LogDirHealth:
    """The health of a partition, of a log dir, or of one file of a segment."""
    from mqindex import kafka

    if show_keys:
        raise Trouble("--show-keys is for RocketMQ: no report of Kafka's files has a key")

    return kafka.report(path, deep=deep, engine=engine, **options.partition())


def keywords(path: str | None, options: BrokerOptions, parts: list[str] | None) -> dict[str, Any]:
    """The options of a partition, or of a log dir."""
    if parts is not None:
        raise Trouble("--parts is for RocketMQ's stores: the indexes of a Kafka partition are built together")
    return dict(options.partition())


def catalogue() -> Catalogue:
    """What each kind of finding means."""
    from mqindex.kafka.catalogue import CATALOGUE

    return CATALOGUE
