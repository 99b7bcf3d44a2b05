"""`mqindex query`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from mqindex.cli.keys import key_batches
from mqindex.cli.kinds import INDEX_DIR, INDEX_FILE, STORE, require_kind
from mqindex.cli.options import StoreOptions, json_option, kind_option, store_options, subcommand, time_option
from mqindex.cli.output import Column, Rows, print_json
from mqindex.cli.trouble import Trouble, say
from mqindex.rocketmq.layout import MAX_TIMESTAMP

if TYPE_CHECKING:
    from mqindex._results import Hits

__all__ = ["command"]


@subcommand("query", "mqindex query /data/store --topic OrderTopic order-1 order-2")
@click.argument("store", metavar="STORE")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("--topic", required=True, metavar="T", help="The topic of the messages.")
@time_option("--begin", 0, "Stored at this time or later: ms since the epoch, or ISO 8601.")
@time_option("--end", MAX_TIMESTAMP, "Stored at this time or earlier.")
@click.option("--max-num", type=click.IntRange(0), default=64, show_default=True, metavar="N", help="Most hits a key.")
@kind_option(STORE, INDEX_DIR, INDEX_FILE)
@store_options
@json_option
def command(
    *,
    store: str,
    keys: tuple[str, ...],
    topic: str,
    begin: int,
    end: int,
    max_num: int,
    kind: str | None,
    options: StoreOptions,
    as_json: bool,
) -> int:
    """Print where the messages of each KEY are in the commit log, newest first, as the broker answers.

    STORE is a store's root, a directory of index files, or one index file. '-' reads keys from stdin, one a line. Only
    hashes are compared: another key of the same hash is found, too. Exit code 1: none of the keys was found.
    """
    kind = require_kind(store, kind, STORE, INDEX_DIR, INDEX_FILE)
    found = 0
    with _open(store, kind, options) as look_up:
        rows: Rows | None = None
        for batch in key_batches(keys):
            hits = look_up(topic, batch, max_num=max_num, begin=begin, end=end)
            found += len(hits.values)
            if as_json:
                for key, offsets in zip(batch, hits.to_pylist(), strict=True):
                    print_json("query", {"topic": topic, "key": key, "phy_offsets": offsets})
            else:
                rows = rows or Rows([Column("phy_offset", 20), Column("key")])
                rows.write((at, key) for key, offsets in zip(batch, hits.to_pylist(), strict=True) for at in offsets)
            sys.stdout.flush()
    if not found and sys.stderr.isatty():
        say(f"no entry of topic {topic!r} with such keys; the index knows only hashes of TOPIC#KEY, so check both")
    return 0 if found else 1


@contextlib.contextmanager
def _open(path: str, kind: str, options: StoreOptions) -> Iterator[Callable[..., Hits]]:
    """The bulk look-up of a store, a directory or a file: f(topic, keys, max_num=, begin=, end=)."""
    from mqindex.rocketmq import IndexFile, IndexService
    from mqindex.rocketmq.options import store_options as chosen_options

    chosen = chosen_options(path, **options)
    slots, entries = chosen.hash_slot_num, chosen.index_num
    if kind == INDEX_FILE:
        with IndexFile.open(path, hash_slot_num=slots, index_num=entries) as file:

            def look_up(topic: str, keys: list[str], **limits: Any) -> Hits:
                return file.select_phy_offsets(keys, topic=topic, **limits)

            yield look_up
        return
    directory = chosen.index if kind == STORE else path
    if not os.path.isdir(directory):
        raise Trouble(
            f"the store has no index: {directory}: expected a directory of index files; `mqindex repair` builds it"
        )
    with IndexService.open(directory, hash_slot_num=slots, index_num=entries) as service:
        yield service.query_offsets
