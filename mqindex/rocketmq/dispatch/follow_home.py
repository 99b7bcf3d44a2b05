"""The directory that a follower fills: whose log it follows, and with which settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mqindex._settings import Setting
from mqindex.errors import BadMagicError, OutputExistsError
from mqindex.files import disk
from mqindex.files.paths import join, list_names
from mqindex.files.reading.regular import reading_text
from mqindex.files.results.output_place import require_apart, require_place
from mqindex.files.results.whole_file import have_file, replace_content
from mqindex.rocketmq.brokers import TAGS_INDEXED, broker_of
from mqindex.rocketmq.checks.wanted_settings import unknown_settings
from mqindex.rocketmq.directories import store as stores
from mqindex.rocketmq.log.dledger import refuse_dledger
from mqindex.rocketmq.options import INDEX_SWITCHES, StoreOptions, store_options
from mqindex.rocketmq.pipeline.survey import require_log, survey
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC, QueueRules, queue_rules
from mqindex.rocketmq.settings import (
    CONSUME_QUEUE_EXT,
    LMQ,
    MAX_HASH_SLOT_NUM,
    MAX_INDEX_NUM,
    MESSAGE_DELAY_LEVEL,
    MULTI_DISPATCH,
    QUEUE_FILE_SIZE,
)

_FILE = "follow.json"
_SCHEMA = "mqindex.follow-home/1"
_DISPATCH_SWITCHES = (LMQ, MULTI_DISPATCH)


@dataclass(frozen=True, slots=True)
class FollowHome:
    """`config`: settings by the broker's names, among them those that were inferred at the first run."""

    out: str
    store: str
    commitlog: tuple[str, ...]
    broker_version: str
    config: Mapping[str, str]
    batch_topics: frozenset[str] = frozenset()

    @property
    def index(self) -> str:
        return join(self.out, "index")

    @property
    def consume_queue(self) -> str:
        return join(self.out, "consumequeue")

    @property
    def checkpoint(self) -> str:
        return join(self.out, "checkpoint")

    @property
    def abort(self) -> str:
        return join(self.out, "abort")

    @property
    def unclean(self) -> bool:
        """Whether the last exit was not a clean one."""
        return stores.was_unclean(self.out)

    @property
    def has_files(self) -> bool:
        """Whether anything was ever dispatched."""
        return disk.is_directory(self.index) or disk.is_directory(self.consume_queue)

    @property
    def options(self) -> StoreOptions:
        """The store options of `out`."""
        return store_options(self.out, config=self.config, commitlog=self.commitlog, broker_version=self.broker_version)

    @property
    def geometry(self) -> tuple[int, int]:
        """hash_slot_num, index_num."""
        return int(self.config["maxHashSlotNum"]), int(self.config["maxIndexNum"])

    @property
    def rules(self) -> QueueRules:
        return queue_rules(self.options, broker=broker_of(self.broker_version))

    @property
    def tags(self) -> bool:
        return broker_of(self.broker_version).does(TAGS_INDEXED) is True


def settle(options: StoreOptions, out: str, *, say: Callable[[str], None]) -> FollowHome:
    """Open the directory, or prepare it at the first run; a place that cannot be used is refused.

    say : called with each setting that nothing shows, and for which the broker's default is taken.
    """
    stores.require_store(options.root)
    refuse_dledger(options)
    require_apart(out, [options.root, *stores.places_of(options.root, options.commitlog)], "the store has")
    path = join(out, _FILE)
    if disk.exists(path):
        home = _read(path, out)
        _require_same(home, options)
        return home
    _require_new(out)
    found = survey(options)
    require_log(found)
    rules = found.queues.rules
    delayed = [(SCHEDULE_TOPIC, queue_id) for queue_id in range(len(rules.delay_levels))]  # any message may come
    for one in unknown_settings(found, index=True, tags=True, queues=delayed):
        say(f"{one.what} is not known, {one.taken} is taken: pass {one.option}")
    home = FollowHome(
        out=out,
        store=options.root,
        commitlog=options.commitlog,
        broker_version=found.version.number,
        config={
            "maxHashSlotNum": str(found.geometry.value[0]),
            "maxIndexNum": str(found.geometry.value[1]),
            QUEUE_FILE_SIZE.name: str(rules.file_size),
            CONSUME_QUEUE_EXT.name: "false",
            MESSAGE_DELAY_LEVEL.name: rules.message_delay_level,
            **_switches(options, *_DISPATCH_SWITCHES, *INDEX_SWITCHES),
            **({} if options.index_switch is None else {"messageIndexEnable": "false"}),  # of every version
        },
        batch_topics=found.queues.batch_topics,
    )
    if not disk.is_directory(out):
        disk.make_directory(out)  # one only: a parent that does not exist is a misspelt path
    have_file(join(out, "lock"), b"lock")  # as in a broker's store; never removed: all lock the same file
    disk.remove_temporaries(out, rf"\.{_FILE}")
    _write(path, home)
    return home


def _require_new(out: str) -> None:
    """Refuse a directory with anything but what a killed first run has left."""
    if not disk.exists(out):
        require_place(out)
    elif not (disk.is_directory(out) and all(one == "lock" or one.startswith(f".{_FILE}.") for one in list_names(out))):
        raise OutputExistsError("the output holds something else", path=out, hint="follow into another directory")


def _require_same(home: FollowHome, options: StoreOptions) -> None:
    """Refuse options that differ, in what they mean, from those that the directory was made with."""
    numbers = (MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, QUEUE_FILE_SIZE)
    given = [(one.name, options.known(one)) for one in numbers]
    pairs: list[tuple[str, Any, Any]]
    pairs = [(name, home.config.get(name), value) for name, value in given if value is not None]
    pairs += [("store", home.store, options.root)]
    if options.commitlog != (join(options.root, "commitlog"),):
        pairs += [("commitlog", ", ".join(home.commitlog), ", ".join(options.commitlog))]
    if options.broker_version is not None:
        pairs += [("broker_version", home.broker_version, options.broker_version)]
    levels = options.given(MESSAGE_DELAY_LEVEL)
    if levels not in (None, home.rules.delay_levels):
        given_levels = replace(home.rules, delay_levels=levels).message_delay_level
        pairs += [(MESSAGE_DELAY_LEVEL.name, home.config.get(MESSAGE_DELAY_LEVEL.name), given_levels)]
    for name, value in _switches(options, *_DISPATCH_SWITCHES).items():
        pairs += [(name, home.config.get(name, "true").lower(), value)]
    if switches := sorted(_switches(options, *INDEX_SWITCHES)):
        pairs += [(" and ".join(switches), _index_of(home.options), _index_of(options))]
    for name, known, value in pairs:
        if known != str(value):
            raise ValueError(f"{name}: {home.out} was made with {known}, got {value}; choose another place for it")


def _switches(options: StoreOptions, *switches: Setting[bool]) -> dict[str, str]:
    """Those that are set, as a configuration has them."""
    given = ((one.name, options.given(one)) for one in switches)
    return {name: str(value).lower() for name, value in given if value is not None}


def _index_of(options: StoreOptions) -> str:
    return "index files" if options.index_switch is None else "no index files"


def _read(path: str, out: str) -> FollowHome:
    try:
        with reading_text(path) as file:
            kept = json.load(file)
        if kept["schema"] != _SCHEMA:
            raise KeyError("schema")
        return FollowHome(
            out=out,
            store=str(kept["store"]),
            commitlog=tuple(map(str, kept["commitlog"])),
            broker_version=str(kept["broker_version"]),
            config={str(name): str(value) for name, value in kept["config"].items()},
            batch_topics=frozenset(map(str, kept["batch_topics"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadMagicError(
            "not the settings of a follower", path=path, expected=_SCHEMA, hint="follow into another directory"
        ) from error


def _write(path: str, home: FollowHome) -> None:
    kept = {
        "schema": _SCHEMA,
        "store": home.store,
        "commitlog": list(home.commitlog),
        "broker_version": home.broker_version,
        "config": dict(home.config),
        "batch_topics": sorted(home.batch_topics),
    }
    replace_content(path, f"{json.dumps(kept, indent=1)}\n".encode())
