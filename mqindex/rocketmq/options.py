"""Store options: what a broker's configuration says about its files, under the broker's own names.

They are read once, by the rows of `settings`, and travel as options.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar

from mqindex._rules import Broker
from mqindex._settings import Setting
from mqindex.columns.limits import several
from mqindex.errors import MQIndexError, may_be_a_name
from mqindex.files.paths import absolute, base_name, join, real_path
from mqindex.files.places.place import Place, given_path
from mqindex.report import Value
from mqindex.rocketmq import kinds, layout, settings
from mqindex.rocketmq.broker_conf import Config, blamed_on, read_config
from mqindex.rocketmq.brokers import LOG_IN_PLACES, LOG_IN_ROOT, ROCKSDB, TAGS_INDEXED, broker_of
from mqindex.rocketmq.settings import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, SETTINGS

T = TypeVar("T")
INDEX_SWITCHES = (settings.MESSAGE_INDEX, settings.INDEX_FILE_WRITE)


class StoreArguments(TypedDict, total=False):
    """The options of everything that opens a store, by keyword. What is not given is inferred from the files.

    Parameters
    ----------
    config : the broker's settings by its own names: a mapping, or the path of a broker.conf. Other options win. What
        a mapping does not set is inferred; a broker.conf is complete, and what it does not set is the broker's default.
    commitlog : where the log is, one directory or several; else `<store>/commitlog`.
    hash_slot_num, index_num : the geometry of index files, maxHashSlotNum and maxIndexNum.
    broker_version : as "4.9.3"; from 5.4 on TAGS are indexed too.
    storage_options : of paths that are URLs, as of `obstore.store.from_url`, for `hdfs://` the configuration of
        hdfs-native; never shown.
    """

    config: Config | None
    commitlog: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None
    hash_slot_num: int | None
    index_num: int | None
    broker_version: str | None
    storage_options: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """One store's directories and settings. Picklable.

    `settings`: those that are set, by the broker's names, each with where. `unlike`: those that the broker has
    otherwise than `broker_conf` says, each with what it takes and why.
    """

    root: str
    commitlog: tuple[str, ...]
    broker_version: str | None = None
    settings: tuple[tuple[str, Value], ...] = ()
    broker_conf: str | None = None
    unlike: tuple[tuple[str, Value], ...] = ()

    def given(self, setting: Setting[T]) -> T | None:
        """What a setting is set to; None: it is not set."""
        said = dict(self.settings).get(setting.name)
        if said is None or setting.multiple == 1:
            return None if said is None else said.value
        rounded: Any = -(-said.value // setting.multiple) * setting.multiple
        return rounded  # type: ignore[no-any-return]

    def known(self, setting: Setting[T]) -> T | None:
        """The same; where a broker.conf, which is complete, does not set it, the default. None: it is not known."""
        return self.value(setting) if self.broker_conf is not None else self.given(setting)

    def value(self, setting: Setting[T]) -> T:
        """What a broker has: as it is set, else the default."""
        given = self.given(setting)
        return setting.parsed(setting.default) if given is None else given

    def reported(self, setting: Setting[Any]) -> Value | None:
        """A known setting and where it is from; None: it is not known."""
        if (known := self.known(setting)) is None:
            return None
        default = Value(None, f"the broker's default, {self.broker_conf} sets no other")
        return Value(known, dict(self.settings).get(setting.name, default).source)

    def having(self, known: Mapping[Setting[Any], Any], broker_version: str) -> StoreOptions:
        """The same with settings and a version that were found out."""
        found = {setting.name: Value(value, "given") for setting, value in known.items()}
        return replace(self, settings=tuple({**dict(self.settings), **found}.items()), broker_version=broker_version)

    @property
    def hash_slot_num(self) -> int | None:
        """The slots of an index file; None: not known."""
        return self.known(MAX_HASH_SLOT_NUM)

    @property
    def index_num(self) -> int | None:
        """The entries of an index file; None: not known."""
        return self.known(MAX_INDEX_NUM)

    @property
    def broker(self) -> Broker:
        """The broker, as far as it was given."""
        return broker_of(self.broker_version)

    @property
    def index(self) -> str:
        """The directory of the index files."""
        return join(self.root, "index")

    @property
    def consume_queue(self) -> str:
        """The directory of the consume queues."""
        return join(self.root, "consumequeue")

    @property
    def consume_queue_ext_directory(self) -> str:
        """The directory of their extension files."""
        return join(self.root, "consumequeue_ext")

    @property
    def batch_consume_queue(self) -> str:
        """The directory of the batch queues."""
        return join(self.root, "batchconsumequeue")

    @property
    def index_switch(self) -> str | None:
        """The switch by which this broker writes no index files; None: it writes them.

        Source: RocketMQ 4.9.3 and 5.5.0 `DefaultMessageStore.CommitLogDispatcherBuildIndex`; before 5.4 there is no
        indexFileWriteEnable. An index in RocksDB (indexRocksDBEnable) comes beside the files, not in their place.
        """
        switches = INDEX_SWITCHES[:1] if self.broker.does(TAGS_INDEXED) is False else INDEX_SWITCHES
        return next((one.name for one in switches if not self.value(one)), None)

    @property
    def queues_in_rocksdb(self) -> bool:
        """Whether the broker keeps its consume queues in RocksDB (`MessageStoreConfig.storeType`)."""
        return self.may_have_rocksdb and self.value(settings.STORE_TYPE).strip().lower() == "defaultrocksdb"

    @property
    def may_have_rocksdb(self) -> bool:
        """Whether the broker's version knows RocksDB, or is not known."""
        return self.broker.does(ROCKSDB) is not False

    @contextmanager
    def blaming(self, kind: type[MQIndexError], *lengths: Setting[int]) -> Iterator[None]:
        """An error of this kind, of files that refute these options, says what the broker.conf has of them."""
        try:
            yield
        except kind as error:
            said = dict(self.settings)
            has = [
                f"{one.name}={said[one.name].value}" if one.name in said else f"no {one.name} that a broker takes"
                for one in lengths
                if one.name not in said or said[one.name].source == self.broker_conf
            ]
            if self.broker_conf is not None and has:
                error.hint = "; ".join(filter(None, (f"{self.broker_conf} has {', '.join(has)}", error.hint)))
            raise


def store_options(
    store: str | os.PathLike[str],
    *,
    config: Config | None = None,
    commitlog: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    broker_version: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> StoreOptions:
    """Put together what was given; the short forms take precedence over `config`.

    >>> options = store_options("/store", config={"maxHashSlotNum": "1000", "maxIndexNum": 4000}, index_num=8000)
    >>> options.hash_slot_num, options.index_num, options.commitlog
    (1000, 8000, ('/store/commitlog',))
    """
    root = absolute(given_path("store", store, storage_options))
    broker = broker_of(broker_version)
    said = read_config(config, broker=broker)
    with blamed_on(said.file):
        found = {
            name: Value(SETTINGS[name].parsed(value), said.file or "config")
            for name, value in said.values.items()
            if name in SETTINGS and value is not None
        }
        _require_version(found, broker)
        if commitlog is not None:
            log = _absolute(given_directories("commitlog", commitlog, storage_options))
        else:
            log = () if isinstance(root, Place) else _configured_log(said.values, broker, whole=said.file is not None)
            _require_own_log(root, log, said.values.get("storePathRootDir"))
    short = zip((MAX_HASH_SLOT_NUM, MAX_INDEX_NUM), layout.given_geometry(hash_slot_num, index_num), strict=True)
    found |= {setting.name: Value(number, "given") for setting, number in short if number is not None}
    options = StoreOptions(
        root=root,
        commitlog=log or (join(root, "commitlog"),),
        broker_version=broker_version,
        settings=tuple(found.items()),
        broker_conf=said.file,
        unlike=said.unlike,
    )
    with blamed_on(said.file):
        layout.given_geometry(options.hash_slot_num, options.index_num, name=MAX_INDEX_NUM.name)
    return options


def _require_version(found: Mapping[str, Value], broker: Broker) -> None:
    """Raise where only the version says whether a switch counts."""
    old, new = (found[one.name].value if one.name in found else None for one in INDEX_SWITCHES)
    if broker.does(TAGS_INDEXED) is None and old is not False and new is False:
        raise ValueError(
            f"indexFileWriteEnable: a broker before {TAGS_INDEXED.since} does not read it and writes index files, "
            "later ones write none; broker_version= (--broker-version) says which it is"
        )


def _configured_log(values: Mapping[str, Any], broker: Broker, *, whole: bool) -> tuple[str, ...]:
    """The directories of the log that are set. `whole`: these are all settings that the broker has.

    Source: RocketMQ 4.9.3 `MessageStoreConfig`.
    """
    said = values.get(settings.LOG_DIRECTORY.name)
    if said is None:
        root = values.get("storePathRootDir")
        old = whole and broker.does(LOG_IN_ROOT) is False
        if root and old and not _is_default_root(root):
            raise ValueError(
                f"storePathCommitLog: it is not set, and a broker before {LOG_IN_ROOT.since} then keeps its log "
                f"in ~/store/commitlog, not in {root}; commitlog= (--commitlog) says where the log is"
            )
        return ()
    if not isinstance(said, (str, os.PathLike)):
        raise TypeError(f"storePathCommitLog: expected text, got {said!r:.60}; commitlog= takes several directories")
    directories = _places(os.fspath(said), values, broker)
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
    own = join(root, "commitlog")
    elsewhere = [place for place in log if real_path(place) != real_path(own)]
    if real_path(os.fspath(configured_root)) == real_path(root) or len(elsewhere) < len(log):
        return
    if kinds.names_in(own) and any(map(kinds.names_in, elsewhere)):
        raise ValueError(
            f"storePathCommitLog: {elsewhere[0]} has a log, and {own} another; storePathRootDir is {configured_root}, "
            f"not {root}; commitlog= (--commitlog) says which of them belongs to this store"
        )


def _places(said: str, values: Mapping[str, Any], broker: Broker) -> list[str]:
    """The names in `said`: up to 4.9.1 a comma is a part of one. Without a comma no broker reads the others.

    Brokers of 4.9.2 and later 4.9 have an empty directory of the whole name too.
    Source: RocketMQ 4.9.1 and 4.9.2 `CommitLog`, `MultiPathMappedFileQueue`; 4.9.3 `DefaultMessageStore`.
    """
    if "," in said and broker.does(LOG_IN_PLACES) is None and kinds.names_in(said):
        raise ValueError(
            f"storePathCommitLog: a broker before {LOG_IN_PLACES.since} has one directory {said}, which has files, "
            "later ones take the comma for the end of a name; broker_version= (--broker-version) says which it is"
        )
    if "," not in said or broker.does(LOG_IN_PLACES) is False:
        return [said] if said else []
    both = f"{said},{values.get(settings.LOG_FOR_READING.name) or ''}"
    return [part for part in both.split(",") if part]


def _is_default_root(root: Any) -> bool:
    """Whether a broker's root may be ~/store, of whichever user."""
    return base_name(os.path.normpath(str(root))) == "store"


def given_directories(name: str, given: Any, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """An argument that is one directory or several; `TypeError` or `ValueError`, naming it: else.

    >>> given_directories("commitlog", "/data/log")
    ['/data/log']
    """
    single = isinstance(given, (str, bytes, os.PathLike))
    directories = [given] if single else several(name, given, "one directory or more")
    for directory in directories:
        if not isinstance(directory, (str, os.PathLike)):
            raise TypeError(f"{name}: expected one directory or more, got {directory!r:.60}")
    found = [given_path(name, directory, storage_options) for directory in directories]
    if not found:
        raise ValueError(f"{name}: expected one directory or more, got none")
    return found


def _absolute(directories: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(absolute, directories)))
