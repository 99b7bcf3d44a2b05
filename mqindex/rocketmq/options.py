"""Store options: what a broker's configuration says about its files, under the broker's own names.

Only what shapes files is read; see `settings`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from mqindex._rules import Broker
from mqindex.columns.limits import several
from mqindex.errors import MQIndexError, may_be_a_name, path_of
from mqindex.report import Value
from mqindex.rocketmq import layout, store
from mqindex.rocketmq.broker_conf import Config, blamed_on, read_settings, whole_setting
from mqindex.rocketmq.brokers import LOG_IN_PLACES, LOG_IN_ROOT, ROCKSDB, TAGS_INDEXED, broker_of
from mqindex.rocketmq.settings import FIELDS, SETTINGS, Setting

_GEOMETRY = ("hash_slot_num", "index_num")
# A broker.conf is complete: what it does not set is the broker's default; delays and queues of queues show themselves.
_OF_WHOLE_CONF: Final = {name: row.default for name, row in FIELDS.items() if name not in
                         ("delay_levels", "multi_dispatch", "lmq")}  # fmt: skip
INDEX_SWITCHES = ("messageIndexEnable", "indexFileWriteEnable")
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class StoreArguments(TypedDict, total=False):
    """The options of everything that opens a store, by keyword. What is not given is inferred from the files.

    Parameters
    ----------
    config : the broker's settings by its own names: a mapping, or the path of a broker.conf. Other options win. What
        a mapping does not set is inferred; a broker.conf is complete, and what it does not set is the broker's default.
    commitlog : where the log is, one directory or several; else `<store>/commitlog`.
    hash_slot_num, index_num : the geometry of index files, maxHashSlotNum and maxIndexNum.
    broker_version : as "4.9.3"; from 5.4 on TAGS are indexed too.
    """

    config: Config | None
    commitlog: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None
    hash_slot_num: int | None
    index_num: int | None
    broker_version: str | None


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """One store's directories and settings; None: not given, to be inferred or defaulted. Picklable.

    `dledger`: whether DLedger keeps the broker's log. `unlike`: settings that the broker has otherwise than
    `broker_conf` says, each with what it takes and why.
    """

    root: str
    commitlog: tuple[str, ...]
    hash_slot_num: int | None = None
    index_num: int | None = None
    broker_version: str | None = None
    mapped_file_size: int | None = None
    consume_queue_file_size: int | None = None
    consume_queue_ext: bool | None = None
    consume_queue_ext_file_size: int | None = None
    batch_queue_file_size: int | None = None
    timer_log_file_size: int | None = None
    dledger: bool | None = None
    delay_levels: tuple[int, ...] | None = None
    multi_dispatch: bool | None = None
    lmq: bool | None = None
    settings: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    broker_conf: str | None = None
    unlike: tuple[tuple[str, Value], ...] = ()

    @property
    def broker(self) -> Broker:
        """The broker, as far as it was given."""
        return broker_of(self.broker_version)

    @property
    def index(self) -> str:
        """The directory of the index files."""
        return os.path.join(self.root, "index")

    @property
    def consume_queue(self) -> str:
        """The directory of the consume queues."""
        return os.path.join(self.root, "consumequeue")

    @property
    def consume_queue_ext_directory(self) -> str:
        """The directory of their extension files."""
        return os.path.join(self.root, "consumequeue_ext")

    @property
    def batch_consume_queue(self) -> str:
        """The directory of the batch queues."""
        return os.path.join(self.root, "batchconsumequeue")

    @property
    def index_switch(self) -> str | None:
        """The switch by which this broker writes no index files; None: it writes them.

        Source: RocketMQ 4.9.3 and 5.5.0 `DefaultMessageStore.CommitLogDispatcherBuildIndex`; before 5.4 there is no
        indexFileWriteEnable. An index in RocksDB (indexRocksDBEnable) comes beside the files, not in their place.
        """
        names = INDEX_SWITCHES[:1] if self.broker.does(TAGS_INDEXED) is False else INDEX_SWITCHES
        return next((name for name in names if _switch(name, self.setting(name)) is False), None)

    @property
    def queues_in_rocksdb(self) -> bool:
        """Whether the broker keeps its consume queues in RocksDB (`MessageStoreConfig.storeType`)."""
        return self.may_have_rocksdb and self.setting("storeType").strip().lower() == "defaultrocksdb"

    @property
    def may_have_rocksdb(self) -> bool:
        """Whether the broker's version knows RocksDB, or is not known."""
        return self.broker.does(ROCKSDB) is not False

    def is_set(self, name: str) -> bool:
        """Whether the broker's configuration has a setting, by the broker's own name."""
        return name in dict(self.settings)

    def setting(self, name: str) -> str:
        """A setting as text; what is not set has the broker's default."""
        return dict(self.settings).get(name, _text(SETTINGS[name].default))

    def number(self, name: str) -> int:
        """The same of a number."""
        with blamed_on(self.broker_conf):
            return whole_setting(name, self.setting(name))

    def is_on(self, name: str) -> bool:
        """Whether a switch is on; only the word "true" turns one on."""
        return self.setting(name).strip().lower() == "true"

    @contextmanager
    def blaming(self, kind: type[MQIndexError], *fields: str) -> Iterator[None]:
        """An error of this kind, of files that refute these options, says what the broker.conf has of them."""
        try:
            yield
        except kind as error:
            names = [FIELDS[field].name for field in fields if field in dict(self.sources)]
            if self.broker_conf is not None and names:
                said = dict(self.settings)
                has = (f"{name}={said[name]}" if name in said else f"no {name} that a broker takes" for name in names)
                error.hint = "; ".join(filter(None, (f"{self.broker_conf} has {', '.join(has)}", error.hint)))
            raise

    def value(self, name: str) -> Value | None:
        """A given option and where it was given; None: it was not."""
        chosen = getattr(self, name)
        return None if chosen is None else Value(chosen, dict(self.sources).get(name, "given"))


def store_options(
    store: str | os.PathLike[str],
    *,
    config: Config | None = None,
    commitlog: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    broker_version: str | None = None,
) -> StoreOptions:
    """Put together what was given; the short forms take precedence over `config`.

    >>> options = store_options("/store", config={"maxHashSlotNum": "1000", "maxIndexNum": 4000}, index_num=8000)
    >>> options.hash_slot_num, options.index_num, options.commitlog
    (1000, 8000, ('/store/commitlog',))
    """
    root = os.path.abspath(path_of("store", store))
    broker = broker_of(broker_version)
    settings, source, broker_conf, unlike = read_settings(config, broker=broker)
    with blamed_on(broker_conf):
        said = _of_settings(settings)
        _require_version(settings, broker)
        if commitlog is not None:
            log = _absolute(given_directories("commitlog", commitlog))
        else:
            log = _configured_log(settings, broker, whole=broker_conf is not None)
            _require_own_log(root, log, settings.get("storePathRootDir"))
    short = dict(zip(_GEOMETRY, layout.given_geometry(hash_slot_num, index_num), strict=True))
    said |= {name: number for name, number in short.items() if number is not None}
    default = f"the broker's default, {broker_conf} sets no other"
    missing = [name for name in _OF_WHOLE_CONF if broker_conf is not None and said[name] is None]
    said |= {name: _OF_WHOLE_CONF[name] for name in missing}
    with blamed_on(broker_conf):
        layout.given_geometry(*(said[name] for name in _GEOMETRY), name=FIELDS["index_num"].name)
    given = {**dict.fromkeys(FIELDS), **short}
    return StoreOptions(
        root=root,
        commitlog=log or (os.path.join(root, "commitlog"),),
        broker_version=broker_version,
        **said,
        settings=tuple((str(name), _text(value)) for name, value in settings.items()),
        sources=tuple((name, default if name in missing else source) for name, value in given.items() if value is None),
        broker_conf=broker_conf,
        unlike=unlike,
    )


def _of_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `StoreOptions` that a broker's configuration gives."""
    for name in INDEX_SWITCHES:
        _switch(name, settings.get(name))
    return {field: _value_of(row, settings.get(row.name)) for field, row in FIELDS.items()}


def _value_of(row: Setting, said: Any) -> Any:
    if said is None:
        return None
    if isinstance(row.default, bool):
        return _switch(row.name, said)
    if isinstance(row.default, str):
        return parse_delay_levels(said)
    number = whole_setting(row.name, said, least=row.least)
    unit = layout.QUEUE_UNIT_SIZE if row.field == "consume_queue_file_size" else 1  # the broker rounds up
    return -(-number // unit) * unit


def parse_delay_levels(levels: str) -> tuple[int, ...]:
    """The delays of `messageDelayLevel` in ms: level 1 first (RocketMQ 4.9.3 `ScheduleMessageService.parseDelayLevel`).

    >>> parse_delay_levels("1s 2m 1h")
    (1000, 120000, 3600000)
    """
    delays = []
    for level in str(levels).split(" "):
        match = re.match(r"^(\d{1,15})([smhd])$", level)
        if match is None:
            raise ValueError(f"messageDelayLevel: expected delays like '1s 5m 2h', got {levels!r:.60}")
        delays.append(int(match[1]) * _UNITS[match[2]])
    return tuple(delays)


def _require_version(settings: Mapping[str, Any], broker: Broker) -> None:
    """Raise where only the version says whether a switch counts."""
    old, new = (_switch(name, settings.get(name)) for name in INDEX_SWITCHES)
    if broker.does(TAGS_INDEXED) is None and old is not False and new is False:
        raise ValueError(
            f"indexFileWriteEnable: a broker before {TAGS_INDEXED.since} does not read it and writes index files, "
            "later ones write none; broker_version= (--broker-version) says which it is"
        )


def _configured_log(settings: Mapping[str, Any], broker: Broker, *, whole: bool) -> tuple[str, ...]:
    """The directories of the log that are set. `whole`: these are all settings that the broker has.

    Source: RocketMQ 4.9.3 `MessageStoreConfig`.
    """
    said = settings.get("storePathCommitLog")
    if said is None:
        root = settings.get("storePathRootDir")
        old = whole and broker.does(LOG_IN_ROOT) is False
        if root and old and not _is_default_root(root):
            raise ValueError(
                f"storePathCommitLog: it is not set, and a broker before {LOG_IN_ROOT.since} then keeps its log "
                f"in ~/store/commitlog, not in {root}; commitlog= (--commitlog) says where the log is"
            )
        return ()
    if not isinstance(said, (str, os.PathLike)):
        raise TypeError(f"storePathCommitLog: expected text, got {said!r:.60}; commitlog= takes several directories")
    directories = _places(os.fspath(said), settings, broker)
    if not directories or any(part != part.strip() for part in directories):
        raise ValueError(
            f"storePathCommitLog: expected directories without blanks before or after their names, got {said!r:.60}: a "
            "broker takes other directories then, and one that finds no log deletes every consume queue"
        )
    if not all(map(may_be_a_name, directories)):
        raise ValueError("storePathCommitLog: expected directories, got a name that no file can have")
    return _absolute(directories)


def _require_own_log(root: str, log: tuple[str, ...], configured_root: Any) -> None:
    """Raise where a copy of a store has a log, and the configuration names that of the store it was copied from."""
    if not isinstance(configured_root, (str, os.PathLike)) or not os.path.isabs(configured_root):
        return
    own = os.path.join(root, "commitlog")
    elsewhere = [place for place in log if os.path.realpath(place) != os.path.realpath(own)]
    if os.path.realpath(configured_root) == os.path.realpath(root) or len(elsewhere) < len(log):
        return
    if store.names_in(own) and any(map(store.names_in, elsewhere)):
        raise ValueError(
            f"storePathCommitLog: {elsewhere[0]} has a log, and {own} another; storePathRootDir is {configured_root}, "
            f"not {root}; commitlog= (--commitlog) says which of them belongs to this store"
        )


def _places(said: str, settings: Mapping[str, Any], broker: Broker) -> list[str]:
    """The names in `said`: up to 4.9.1 a comma is a part of one. Without a comma no broker reads the others.

    Brokers of 4.9.2 and later 4.9 have an empty directory of the whole name too.
    Source: RocketMQ 4.9.1 and 4.9.2 `CommitLog`, `MultiPathMappedFileQueue`; 4.9.3 `DefaultMessageStore`.
    """
    if "," in said and broker.does(LOG_IN_PLACES) is None and store.names_in(said):
        raise ValueError(
            f"storePathCommitLog: a broker before {LOG_IN_PLACES.since} has one directory {said}, which has files, "
            "later ones take the comma for the end of a name; broker_version= (--broker-version) says which it is"
        )
    if "," not in said or broker.does(LOG_IN_PLACES) is False:
        return [said] if said else []
    both = f"{said},{settings.get('readOnlyCommitLogStorePaths') or ''}"
    return [part for part in both.split(",") if part]


def _is_default_root(root: Any) -> bool:
    """Whether a broker's root may be ~/store, of whichever user."""
    return os.path.basename(os.path.normpath(str(root))) == "store"


def given_directories(name: str, given: Any) -> list[str]:
    """An argument that is one directory or several; `TypeError` or `ValueError`, naming it: else.

    >>> given_directories("commitlog", "/data/log")
    ['/data/log']
    """
    single = isinstance(given, (str, bytes, os.PathLike))
    directories = [given] if single else several(name, given, "one directory or more")
    for directory in directories:
        if not isinstance(directory, (str, os.PathLike)):
            raise TypeError(f"{name}: expected one directory or more, got {directory!r:.60}")
    found = [path_of(name, directory) for directory in directories]
    if not found:
        raise ValueError(f"{name}: expected one directory or more, got none")
    return found


def _absolute(directories: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(os.path.abspath, directories)))


def _switch(name: str, value: Any) -> bool | None:
    if value is None:
        return None
    text = _text(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}: expected true or false, got {value!r:.60}")
    return text == "true"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
