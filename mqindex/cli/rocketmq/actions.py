"""What the commands do with RocketMQ's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from mqindex.cli.broker import Listing, Question, Selection
from mqindex.cli.options import BrokerOptions
from mqindex.cli.rocketmq.kinds import COMMIT_LOG_DIR, COMMIT_LOG_FILE, INDEX_DIR, INDEX_FILE, STORE
from mqindex.cli.trouble import Trouble
from mqindex.files import disk
from mqindex.files.paths import absolute, base_name, join, parent_of
from mqindex.wording.text import deleted_meanwhile

if TYPE_CHECKING:
    from mqindex.cli.printing.formats import Columns
    from mqindex.engines import Engine
    from mqindex.report import Catalogue, Report
    from mqindex.rocketmq import Scan
    from mqindex.rocketmq.health.store_health import StoreHealth
    from mqindex.rocketmq.options import StoreArguments

_BLOCK = 1 << 16
_MAIN_COLUMNS = (
    "phy_offset",
    "size",
    "store_timestamp",
    "topic",
    "queue_id",
    "queue_offset",
    "uniq_key",
    "keys",
    "tags",
)

LISTED = "files, queues and offsets"


def facts(kind: str, path: str, options: BrokerOptions) -> dict[str, Any]:
    """The facts of a store, or of something in it."""
    from mqindex.cli.rocketmq.store_facts import facts_of

    return facts_of(kind, path, options.store())


def screen(facts: dict[str, Any]) -> None:
    """Print the first screen of facts that have a glance."""
    from mqindex.cli.rocketmq.screen import print_screen

    print_screen(facts)


def query(kind: str, path: str, question: Question, options: BrokerOptions, *, as_json: bool) -> int:
    """Print where the messages of keys are; returns how many there are."""
    from mqindex.cli.rocketmq.key_query import print_hits

    if question.offsets or question.csv:
        raise Trouble(f"{'--offset' if question.offsets else '--csv'} is for Kafka: expected --topic T KEY...")
    if question.timestamps:
        from mqindex.cli.rocketmq.time_query import print_offsets

        return print_offsets(kind, path, question, options.store(), as_json=as_json)
    if question.topic is None:
        raise click.UsageError("Missing option '--topic'.", click.get_current_context(silent=True))
    if not question.keys:
        raise click.UsageError("Missing argument 'KEY...'.", click.get_current_context(silent=True))
    return print_hits(kind, path, question, options.store(), as_json=as_json)


def require_log(path: str, options: StoreArguments) -> None:
    """Raise unless the store at `path` has a commit log, and not an empty one in place of the one that was indexed.

    If only a cluster sees the store, its workers check it.
    """
    from mqindex.rocketmq.directories.store import require_parts
    from mqindex.rocketmq.log.dledger import refuse_dledger
    from mqindex.rocketmq.options import store_options
    from mqindex.rocketmq.pipeline.survey import log_gone_from, refuse_log_gone

    chosen = store_options(path, **options)
    directories = chosen.commitlog
    refuse_dledger(chosen)
    if disk.is_directory(path) and not any(map(disk.exists, directories)):
        require_parts(path)
        raise Trouble(f"no commit log: {directories[0]}: expected its directory; --commitlog says where it is")
    if disk.is_directory(path):
        refuse_log_gone(log_gone_from(path, directories))


def _require_something(path: str, options: StoreArguments) -> None:
    if not any(disk.is_directory(join(path, part)) for part in ("index", "consumequeue")):
        require_log(path, options)  # else the report says that the log is missing


def zones(cache: str | bool | None) -> dict[str, Any]:
    """Zone maps come with the units of the queues."""
    return {"cache": cache}


def verify(
    kind: str, path: str, options: BrokerOptions, *, deep: bool, cache: str | bool | None, engine: Engine
) -> Report:
    """Check a store; or index files against themselves."""
    from mqindex.rocketmq.checks.structure import verify_structure
    from mqindex.rocketmq.verify import verify as verify_store

    if kind == STORE:
        _require_something(path, options.store())
        return verify_store(path, deep=deep, cache=cache, engine=engine, **options.store())
    if isinstance(cache, str):
        raise Trouble("--cache is for zone maps of a log: expected a store's root directory")
    if deep:
        raise Trouble("--deep compares with the commit log: expected a store's root directory")
    return verify_structure(path, options.store(), engine=engine)


def report(path: str, options: BrokerOptions, *, deep: bool, show_keys: bool, engine: Engine) -> StoreHealth:
    """The health of a store."""
    from mqindex.rocketmq.report import report as report_store

    _require_something(path, options.store())
    return report_store(path, deep=deep, show_keys=show_keys, engine=engine, **options.store())


def keywords(path: str | None, options: BrokerOptions, parts: list[str] | None) -> dict[str, Any]:
    """The options of a store, which has a commit log; None: of several, whose logs are looked at with each."""
    if path is not None:
        require_log(path, options.store())
    return {"parts": parts, **options.store()}


def catalogue() -> Catalogue:
    """What each kind of finding means."""
    from mqindex.rocketmq.catalogue import CATALOGUE

    return CATALOGUE


def columns(kind: str, path: str, listing: Listing, options: BrokerOptions) -> Iterator[Columns]:
    """The entries of an index file, messages of a commit log, units of queues; messages for people are shortened."""
    from mqindex.cli.rocketmq.queues import unit_columns

    if listing.records or listing.isolation is not None:
        raise Trouble(f"{'--records' if listing.records else '--isolation-level'} is for Kafka's segments")
    store = options.store()
    if kind == INDEX_FILE:
        return _entries(path, store)
    if kind == INDEX_DIR:
        return _entries_of_files(path, store)
    if kind in (COMMIT_LOG_DIR, COMMIT_LOG_FILE):
        return _messages(path, kind, _MAIN_COLUMNS if listing.for_people else None, listing.damage)
    return unit_columns(path, kind)


def messages(path: str, selection: Selection, options: BrokerOptions) -> Scan:
    """The messages of a store's log, of a commit log, or of one of its files."""
    from mqindex.rocketmq import scan

    if selection.partitions or selection.isolation is not None:
        raise Trouble("--partition and --isolation-level are for Kafka: expected --topic and --queue-id")
    if selection.decode:
        raise Trouble("--decode is for topics that Kafka's brokers keep for themselves")
    return scan(
        path, topic=selection.topic, queue_id=selection.queue_ids or None, begin=selection.begin, end=selection.end,
        start_offset=selection.offset, keys=selection.keys, tags=selection.tags, columns=selection.columns,
        cache=selection.cache, **options.store(),
    )  # fmt: skip


def other_topics(kind: str, path: str, topic: str | None) -> str:
    """The topics of a store that has none of this name, in words; "": it has, or that is not known."""
    from mqindex.cli.rocketmq.key_query import other_topics

    return other_topics(path, topic) if kind == STORE and topic is not None else ""


def shown() -> tuple[str, ...]:
    """The columns of messages for people."""
    return ("store_timestamp", "topic", "queue_id", "queue_offset", "phy_offset", "tags", "keys", "uniq_key", "body")


def _entries(path: str, options: StoreArguments) -> Iterator[Columns]:
    import numpy as np

    from mqindex.rocketmq.index.compare import next_entry
    from mqindex.rocketmq.index.opening import open_index_file

    file, _ = open_index_file(path, options)
    with file:
        begin, stop = file.header.begin_timestamp, next_entry(file)
        for first in range(1, max(stop, 2), _BLOCK):
            last = min(first + _BLOCK, stop)
            block = file.entries(first, last)
            yield {
                "number": np.arange(first, last, dtype=np.int64),
                "key_hash": block["key_hash"],
                "phy_offset": block["phy_offset"],
                "time_diff": block["time_diff"],
                "time": begin + 1000 * block["time_diff"].astype(np.int64),
                "prev_index": block["prev_index"],
            }


def _entries_of_files(directory: str, options: StoreArguments) -> Iterator[Columns]:
    """The entries of all files, each with the name of its file; a file of another geometry is an error."""
    from mqindex.columns.columns import constant_text
    from mqindex.rocketmq.kinds import index_paths

    for path in sorted(index_paths(directory)):
        for columns in _entries(path, options):
            yield {"file": constant_text(base_name(path), len(columns["number"])), **columns}


def _messages(path: str, kind: str, names: Sequence[str] | None, damage: list[str]) -> Iterator[Columns]:
    from mqindex.cli.rocketmq.queues import log_file_extent
    from mqindex.rocketmq import CommitLog
    from mqindex.rocketmq.messages.log_columns import no_messages, require_columns

    if kind == COMMIT_LOG_DIR:
        directory, start, stop = path, None, None
    else:
        directory = parent_of(absolute(path))
        start, stop = log_file_extent(path)
    batch = None
    with CommitLog.open([directory]) as log:
        for batch in log.scan(start, stop, columns=names):
            yield batch
        damage += map(str, log.damage)
        damage += [deleted_meanwhile(file.path) for file in log.expired]
    if batch is None:  # a reader of CSV or Arrow still learns names and types
        yield no_messages(require_columns(names))
