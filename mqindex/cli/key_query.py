"""Keys looked up in RocketMQ's index."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mqindex.cli.brokers import Question
from mqindex.cli.keys import argument_text, key_batches
from mqindex.cli.options import StoreOptions
from mqindex.cli.output import Column, Rows, print_json
from mqindex.cli.rocketmq_kinds import INDEX_FILE, STORE
from mqindex.cli.trouble import Trouble, say

if TYPE_CHECKING:
    from mqindex._results import Hits

__all__ = ["print_hits"]


def print_hits(kind: str, path: str, question: Question, options: StoreOptions, *, as_json: bool) -> int:
    """A line a hit, or as JSON a key; how many hits there were."""
    from mqindex.rocketmq.layout import MAX_TIMESTAMP

    topic, found = argument_text(question.topic or "", "topic"), 0
    end = MAX_TIMESTAMP if question.end is None else question.end
    limits = {"max_num": question.max_num, "begin": question.begin, "end": end}
    with _open(path, kind, options) as look_up:
        rows: Rows | None = None
        for batch in key_batches(question.keys):
            hits = look_up(topic, batch, **limits)
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
    return found


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
