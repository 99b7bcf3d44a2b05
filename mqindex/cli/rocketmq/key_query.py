"""Keys looked up in RocketMQ's index."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mqindex._words import plural
from mqindex.cli.broker import Question
from mqindex.cli.keys import argument_text, key_batches
from mqindex.cli.output import Column, Rows, print_json
from mqindex.cli.rocketmq.kinds import INDEX_FILE, STORE
from mqindex.cli.trouble import Trouble, say, system_sentence
from mqindex.errors import MQIndexError

if TYPE_CHECKING:
    from mqindex.columns.hits import Hits
    from mqindex.rocketmq import IndexFile
    from mqindex.rocketmq.options import StoreArguments

__all__ = ["print_hits"]

_TOPICS = 5  # named where there are others than the one that was asked for


def print_hits(kind: str, path: str, question: Question, options: StoreArguments, *, as_json: bool) -> int:
    """A line a hit, or as JSON a key; how many hits there were. What --max-num leaves out is said on stderr."""
    from mqindex.rocketmq.layout import MAX_TIMESTAMP

    topic, found, cut = argument_text(question.topic or "", "topic"), 0, 0
    end = MAX_TIMESTAMP if question.end is None else question.end
    limits = {"max_num": question.max_num + 1, "begin": question.begin, "end": end}  # one more, to know of it
    unread: list[str] = []
    with _open(path, kind, options, unread) as look_up:
        rows: Rows | None = None
        for batch in key_batches(question.keys):
            hits = look_up(topic, batch, **limits).to_pylist()
            answers = [offsets[: question.max_num] for offsets in hits]
            more = [len(offsets) > question.max_num for offsets in hits]
            found, cut = found + sum(map(len, answers)), cut + sum(more)
            if as_json:
                for key, offsets, left_out in zip(batch, answers, more, strict=True):
                    print_json("query", {"topic": topic, "key": key, "phy_offsets": offsets, "more": left_out})
            else:
                rows = rows or Rows([Column("phy_offset", 20), Column("key")])
                rows.write((at, key) for key, offsets in zip(batch, answers, strict=True) for at in offsets)
            sys.stdout.flush()
    if cut:
        say(f"--max-num {question.max_num} cut the answer of {plural(cut, 'key')}: there are more entries, older ones")
    if unread and not found:
        raise Trouble(f"nothing was found, but {plural(len(unread), 'index file')} could not be read")
    if not found and sys.stderr.isatty():
        others = _other_topics(path, topic) if kind == STORE else ""
        say(
            f"no entry of topic {topic!r} with such keys; "
            + (others or "the index knows only hashes of TOPIC#KEY, so check both")
        )
    return found


def _other_topics(store: str, topic: str) -> str:
    """Which topics a store has queues of, where this one is not among them."""
    from mqindex.rocketmq.queue.queue_files import subdirectories

    there = sorted(os.path.basename(path) for path in subdirectories(os.path.join(store, "consumequeue")))
    if not there or topic in there:
        return ""
    more = f" and {plural(len(there) - _TOPICS, 'more', 'more')}" if len(there) > _TOPICS else ""
    return f"the store has queues of {', '.join(there[:_TOPICS])}{more}"


@contextlib.contextmanager
def _open(path: str, kind: str, options: StoreArguments, unread: list[str]) -> Iterator[Callable[..., Hits]]:
    """The bulk look-up of a store, a directory or a file: f(topic, keys, max_num=, begin=, end=).

    Files of a directory that cannot be read are named on stderr, and gathered in `unread`.
    """
    from mqindex.rocketmq import IndexFile, IndexService
    from mqindex.rocketmq.index.opening import geometry_of
    from mqindex.rocketmq.options import store_options as chosen_options

    chosen = chosen_options(path, **options)
    if kind == INDEX_FILE:
        with IndexFile.open(path, hash_slot_num=chosen.hash_slot_num, index_num=chosen.index_num) as file:

            def look_up(topic: str, keys: list[str], **limits: Any) -> Hits:
                return file.select_phy_offsets(keys, topic=topic, **limits)

            yield look_up
        return
    directory = chosen.index if kind == STORE else path
    if not os.path.isdir(directory):
        raise Trouble(
            f"the store has no index: {directory}: expected a directory of index files; `mqindex repair` builds it"
        )
    slots, entries, _ = geometry_of(directory, options)
    with contextlib.ExitStack() as opened:
        files = _readable(directory, slots, entries, unread, opened)
        with IndexService(directory, files, slots or 0, entries or 0, False, opened.pop_all()) as service:
            yield service.query_offsets


def _readable(
    directory: str, slots: int | None, entries: int | None, unread: list[str], opened: contextlib.ExitStack
) -> list[IndexFile]:
    from mqindex.rocketmq import IndexFile
    from mqindex.rocketmq.store import index_paths, stray_index_names

    for name in stray_index_names(directory):
        say(f"warning: skipped, its name is not a number: {os.path.join(directory, name)}")
    files: list[IndexFile] = []
    paths = index_paths(directory)
    for path in paths:
        try:
            files.append(opened.enter_context(IndexFile.open(path, hash_slot_num=slots, index_num=entries)))
        except (MQIndexError, OSError) as error:
            if path != paths[-1] or os.path.getsize(path) > 0:  # a running broker makes its next file empty first
                unread.append(path)
            reason = system_sentence(error) if isinstance(error, OSError) else str(error)
            say(f"{reason}; its entries are missing from the answer")
    return files
