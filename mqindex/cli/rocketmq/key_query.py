"""Keys looked up in RocketMQ's index."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from mqindex._words import plural
from mqindex.cli.broker import Question
from mqindex.cli.keys import argument_text, key_batches
from mqindex.cli.printing.output import Column, Rows, print_json
from mqindex.cli.rocketmq.kinds import INDEX_FILE, STORE
from mqindex.cli.rocketmq.message_rows import MessageRows, hit_fields, open_log
from mqindex.cli.trouble import Trouble, say
from mqindex.errors import MQIndexError, reason
from mqindex.files import disk
from mqindex.files.paths import base_name, join, size_of
from mqindex.files.places.place import Place, require_answer

if TYPE_CHECKING:
    from mqindex.rocketmq import CommitLog, IndexFile, IndexService
    from mqindex.rocketmq.options import StoreArguments

Show = Callable[[list[str], list[list[int]], list[bool]], None]  # of a batch: keys, places, whether there are more

_TOPICS = 5  # named where the store has others than the requested one


def print_hits(kind: str, path: str, question: Question, options: StoreArguments, *, as_json: bool) -> int:
    """Print a line for each hit, as JSON for each key; returns how many hits there were. stderr names what is cut."""
    topic, found, cut, expired = argument_text(question.topic or "", "topic"), 0, 0, 0
    begin = None if kind != STORE or question.messages else _log_begin(path, options)
    unread: list[str] = []
    with open_log(kind, path, question, options) as log, _open(path, kind, options, unread) as index:
        find = partial(_find, index, log, topic, question)
        show: Show = (
            _JsonLines(topic, log if question.messages else None) if as_json
            else MessageRows(log) if question.messages and log is not None else _Places()
        )  # fmt: skip
        for batch in key_batches(question.keys):
            hits = find(batch)
            answers = [offsets[: question.max_num] for offsets in hits]
            more = [len(offsets) > question.max_num for offsets in hits]
            found, cut = found + sum(map(len, answers)), cut + sum(more)
            expired += sum(at < (begin or 0) for offsets in answers for at in offsets)
            show(batch, answers, more)
            sys.stdout.flush()
    if expired:
        say(f"{plural(expired, 'of these messages is', 'of these messages are')} expired: the log begins at {begin}")
    if cut:
        say(f"--max-num {question.max_num} cut the answer of {plural(cut, 'key')}: there are more entries, older ones")
    if unread and not found:
        raise Trouble(f"nothing was found, but {plural(len(unread), 'index file')} could not be read")
    if not found:
        others = other_topics(path, topic) if kind == STORE else ""
        if others or sys.stderr.isatty():
            hint = others or "the index knows only hashes of TOPIC#KEY, so check both"
            say(f"no entry of topic {topic!r} with such keys; {hint}")
    return found


def _log_begin(store: str, options: StoreArguments) -> int | None:
    """Where the log of a store begins; None: nothing of it can be read."""
    from mqindex.rocketmq import CommitLog
    from mqindex.rocketmq.options import store_options

    try:
        with CommitLog._as_set(store_options(store, **options)) as log:
            return log.min_phy_offset
    except (MQIndexError, OSError, ValueError) as error:
        require_answer(error, store)
        return None


def _find(
    index: IndexFile | IndexService, log: CommitLog | None, topic: str, question: Question, keys: list[str]
) -> list[list[int]]:
    """The phy offsets of each key, newest first; one more than --max-num where there are more."""
    from mqindex.rocketmq import IndexService
    from mqindex.rocketmq.layout import MAX_TIMESTAMP
    from mqindex.rocketmq.serving.query_message import query_exact

    most, begin = min(question.max_num + 1, 2**63 - 1), question.begin  # of 64 bits, which no answer reaches
    end = MAX_TIMESTAMP if question.end is None else question.end
    if not isinstance(index, IndexService):
        return index.select_phy_offsets(keys, topic=topic, max_num=most, begin=begin, end=end).to_pylist()
    if not question.exact or log is None:
        return index.query_offsets(topic, keys, max_num=most, begin=begin, end=end).to_pylist()
    answers = (query_exact(index, log, topic, key, most, begin, end).messages for key in keys)
    return [[message.phy_offset for message in reversed(messages)] for messages in answers]


class _Places:
    """Prints a line for each hit: where it is."""

    def __init__(self) -> None:
        self._rows = Rows([Column("phy_offset", 20), Column("key")])

    def __call__(self, keys: list[str], answers: list[list[int]], more: list[bool]) -> None:
        self._rows.write((at, key) for key, offsets in zip(keys, answers, strict=True) for at in offsets)


class _JsonLines:
    """Prints a line for each key; with a log the messages too."""

    def __init__(self, topic: str, log: CommitLog | None) -> None:
        self._topic, self._log = topic, log

    def __call__(self, keys: list[str], answers: list[list[int]], more: list[bool]) -> None:
        for key, offsets, left_out in zip(keys, answers, more, strict=True):
            said = {"topic": self._topic, "key": key, "phy_offsets": offsets, "more": left_out}
            if self._log is not None:
                said["messages"] = [hit_fields(self._log, at) for at in offsets]
            print_json("query", said)


def other_topics(store: str, topic: str) -> str:
    """The topics that have queues in a store, if this one is not among them; the one that was perhaps meant."""
    from difflib import get_close_matches

    from mqindex.rocketmq.kinds import subdirectories

    there = sorted(map(base_name, subdirectories(join(store, "consumequeue"))))
    if not there or topic in there:
        return ""
    if meant := get_close_matches(topic, there, 1):
        return f"the store has no queue of this topic; did you mean {meant[0]}?"
    more = f" and {plural(len(there) - _TOPICS, 'more', 'more')}" if len(there) > _TOPICS else ""
    return f"the store has queues of {', '.join(there[:_TOPICS])}{more}"


@contextlib.contextmanager
def _open(path: str, kind: str, options: StoreArguments, unread: list[str]) -> Iterator[IndexFile | IndexService]:
    """The index of a store, a directory of index files, or one file.

    Files of a directory that cannot be read are named on stderr, and gathered in `unread`.
    """
    from mqindex.rocketmq import IndexFile, IndexService
    from mqindex.rocketmq.index.opening import geometry_of
    from mqindex.rocketmq.log.dledger import refuse_configured_dledger
    from mqindex.rocketmq.options import store_options as chosen_options

    chosen = chosen_options(path, **options)
    if kind == STORE:
        refuse_configured_dledger(chosen)
    if kind == INDEX_FILE:
        with IndexFile.open(path, hash_slot_num=chosen.hash_slot_num, index_num=chosen.index_num) as file:
            yield file
        return
    directory = chosen.index if kind == STORE else path
    if not disk.is_directory(directory):
        raise Trouble(
            f"the store has no index: {directory}: expected a directory of index files; `mqindex repair` builds it, "
            "if the log has a message"
        )
    if isinstance(directory, Place):
        with _open_elsewhere(directory, chosen.hash_slot_num, chosen.index_num, unread) as elsewhere:
            yield elsewhere
        return
    slots, entries, _ = geometry_of(directory, options)
    with contextlib.ExitStack() as opened:
        files = _readable(directory, slots, entries, unread, opened)
        with IndexService(directory, files, slots or 0, entries or 0, False, opened.pop_all()) as service:
            yield service


def _open_elsewhere(directory: Place, slots: int | None, entries: int | None, unread: list[str]) -> IndexService:
    """The same of a directory elsewhere."""
    from mqindex.rocketmq import IndexFile, IndexService
    from mqindex.rocketmq.index.elsewhere import find_files

    def tell(path: str, error: Exception) -> None:
        require_answer(error, path)
        unread.append(path)
        say(f"{reason(error)}; its entries are missing from the answer")

    found = find_files(directory, slots, entries, tell)
    files = [IndexFile._open_elsewhere(one) for one in found]
    return IndexService(directory, files, *found[0].geometry, False, contextlib.ExitStack())


def _readable(
    directory: str, slots: int | None, entries: int | None, unread: list[str], opened: contextlib.ExitStack
) -> list[IndexFile]:
    from mqindex.rocketmq import IndexFile
    from mqindex.rocketmq.kinds import index_paths, stray_index_names

    for name in stray_index_names(directory):
        say(f"warning: skipped, its name is not a number: {join(directory, name)}")
    files: list[IndexFile] = []
    paths = index_paths(directory)
    for path in paths:
        try:
            files.append(opened.enter_context(IndexFile.open(path, hash_slot_num=slots, index_num=entries)))
        except (MQIndexError, OSError) as error:
            if path != paths[-1] or size_of(path) > 0:  # a running broker makes its next file empty first
                unread.append(path)
            say(f"{reason(error)}; its entries are missing from the answer")
    return files
