"""What a directory or a file of a store is: by its name, its place, what lies in it, and what it begins with.

Files of a log, of a queue and of its extension are named by 20 digits, the byte at which they begin; index files by 17,
the time of their creation. Source: RocketMQ 4.9.3 to 5.5.0 `UtilAll.offset2FileName`, `MappedFile.init`,
`IndexFile`, `DefaultMessageStore.loadConsumeQueue`.
"""

from __future__ import annotations

import itertools
import os
import re
import struct
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from mqindex.files import disk
from mqindex.files.entries import leads_to_directory
from mqindex.files.paths import absolute, base_name, join, list_names, parent_of, scan, size_of, split
from mqindex.files.places.place import Place, without_unread
from mqindex.files.reading.regular import reading
from mqindex.rocketmq.layout import CHECKPOINT_SIZE, MAGIC_BLANK, MAGIC_MESSAGE_V1, MAGIC_MESSAGE_V2, QUEUE_UNIT_SIZE

Beginning = Literal["message", "unit", "zeros"]

OFFSET_DIGITS: Final = 20
INDEX_DIGITS: Final = 17
QUEUES: Final = ("consumequeue", "consumequeue_ext", "batchconsumequeue")
# Names in a store's root: those that no other program gives, and those that may be anybody's.
OWN_NAMES: Final = {
    "commitlog", *QUEUES, "consumequeue_rocksdb", "rocksdbstore", "timerwheel", "timerlog", "epochFileCheckpoint",
}  # fmt: skip
COMMON_NAMES: Final = {
    "index", "config", "checkpoint", "lock", "abort", "abort.bak", "compaction", "transaction", "brokerIdentity",
    "tiered_index_file",
}  # fmt: skip
_LEFT: Final = (
    *OWN_NAMES, "index", "checkpoint", "abort", "abort.bak",
    join("config", "topics.json"), join("config", "consumerOffset.json"),
)  # fmt: skip
_OF_RESULTS: Final = ("index", "mqindex-index", *QUEUES)
_DEEPEST: Final = 4  # names of a file in a store: consumequeue/<topic>/<queueId>/<file>
_BEGINNINGS: Final = ("dledger-", "mqindex-backup-")
_PARTS: Final = ("commitlog", "consumequeue", "index")
_OFFSETS: Final = ("consumerOffset.json", "lmqConsumerOffset.json")
_CONFIG: Final = ("consumerFilter.json", "delayOffset.json", "subscriptionGroup.json", "topics.json")
_OF_QUEUES: Final = {  # the directory of all queues -> the kind of one queue's directory; its files are "...-file"
    "consumequeue": "consumequeue",
    "consumequeue_ext": "consumequeue-ext",
    "batchconsumequeue": "batchconsumequeue",
}
_INTEGER: Final = re.compile(r"[+-]?\d+")
_ROCKSDB: Final = re.compile(r"CURRENT|(MANIFEST|OPTIONS)-\d{6,}|\d{6,}\.sst", re.ASCII)

_FRAME: Final = struct.Struct(">ii")  # total_size, magic_code
_UNIT: Final = struct.Struct(">qi8x")  # phy_offset, size
_MAGICS: Final = {MAGIC_BLANK, MAGIC_MESSAGE_V1, MAGIC_MESSAGE_V2}


# ---- names


def number_of(name: str | os.PathLike[str]) -> int | None:
    """The number that a file is named by, in any script's digits as the broker accepts them; None: not a number.

    >>> number_of("store/commitlog/00000000001073741824"), number_of("٠٠٠٧"), number_of("1.bak")
    (1073741824, 7, None)
    """
    digits = name if type(name) is str and name.isdecimal() else base_name(os.fspath(name))
    return int(digits) if digits.isdecimal() and int(digits) < 2**63 else None


def offset_of(name: str) -> int | None:
    """Where a file of a log or a queue begins, by its name; None: it is not named as one.

    >>> offset_of(name_at(1073741824)), offset_of("20231114221320000")
    (1073741824, None)
    """
    return number_of(name) if len(name) == OFFSET_DIGITS else None


def name_at(offset: int) -> str:
    """The name of a file of a log or a queue that begins there."""
    return f"{offset:0{OFFSET_DIGITS}d}"


def is_index_name(name: str) -> bool:
    """Whether an index file is named so by a broker, which loads files with other numbers too."""
    return len(name) == INDEX_DIGITS and number_of(name) is not None


def parsed_queue_id(name: str) -> int | None:
    """The queue that a broker takes a directory for, as `Integer.parseInt` reads its name; None: it passes it over."""
    number = int(name) if _INTEGER.fullmatch(name) else 2**31
    return number if -(2**31) <= number < 2**31 else None


def queue_id_of(name: str) -> int | None:
    """The queue whose directory is named so. None: it is no queue's; for `07` a broker opens `7`."""
    number = parsed_queue_id(name)
    return None if number is None or number < 0 or str(number) != name else number


def is_part(name: str) -> bool:
    """Whether a name in a store's root is one that brokers give there, or a backup's; every other one is free."""
    return name in OWN_NAMES or name in COMMON_NAMES or name.startswith(_BEGINNINGS)


def is_anywhere(name: str) -> bool:
    """Whether a name says nothing of a directory: a hidden one, or what file systems put there."""
    return name == "lost+found" or name.startswith(".")


# ---- results elsewhere


def require_finished(path: str) -> dict[str, Any]:
    """See `mqindex.files.results.finished`; what `rebuild` and `optimize` make is a store's root with parts in it."""
    if not isinstance(path, Place):
        return {}
    from mqindex.files.results import finished  # here: files of this machine need none of it

    above: list[str] = [path]
    while len(above) <= _DEEPEST:
        above.append(parent_of(above[-1]))
    roots = [home for part, home in itertools.pairwise(above) if base_name(part) in _OF_RESULTS]
    return finished.require_finished(path, *roots)


# ---- what is in a directory


def names_in(directory: str) -> list[str]:
    """All names in a directory, sorted; none where there is no directory."""
    try:
        return sorted(list_names(directory))
    except (FileNotFoundError, NotADirectoryError):  # as a broker, which finds no file there
        return []


def subdirectories(directory: str) -> list[str]:
    """The directories in a directory; none where it does not exist."""
    try:
        with scan(directory) as entries:
            return [entry.path for entry in entries if leads_to_directory(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def queue_paths(home: str) -> list[str]:
    """The directories that a broker loads as queues, `<topic>/<queueId>`; `list_queues` takes none below 0."""
    paths = [path for topic in sorted(subdirectories(home)) for path in sorted(subdirectories(topic))]
    return [path for path in paths if str(parsed_queue_id(name := base_name(path))) == name]


def numbered(directory: str) -> list[str]:
    """The paths in a directory that have a number as name, sorted."""
    return [join(directory, name) for name in names_in(directory) if number_of(name) is not None]


def index_paths(directory: str) -> list[str]:
    """The index files of a directory in the broker's load order: by name, numeric names only."""
    return [path for path in numbered(directory) if not disk.is_directory(path)]


def index_directories(directory: str) -> list[str]:
    """Directories named as index files are: a broker loads no file after them, one of 5.1 or later does not start."""
    return [path for path in numbered(directory) if disk.is_directory(path)]


def stray_index_names(directory: str) -> list[str]:
    """Names that the broker logs and skips."""
    return [name for name in names_in(directory) if number_of(name) is None]


def strangers(directory: str, named: Callable[[str], int | None] = offset_of) -> list[str]:
    """The names in a directory that say what it is, where none is a file's name as `named` reads it; else []."""
    names = names_in(directory)
    return [] if any(named(name) is not None for name in names) else [name for name in names if not is_anywhere(name)]


# ---- directories


class QueuePlace(NamedTuple):
    """Where a path is in a directory of queues, `home`: that itself, a topic's, or a queue's."""

    home: str
    topic: str | None
    queue_id: int | None


def queue_place(path: str) -> QueuePlace | None:
    """Where in a directory of queues a path is; None: in none. The outermost counts: a topic may be called so too."""
    home, found = absolute(path), None
    below: list[str] = []
    while True:
        queue_id = queue_id_of(below[1]) if len(below) > 1 else None
        if base_name(home) in QUEUES and (queue_id is not None or len(below) < 2) and are_queues(home):
            found = QueuePlace(home, below[0] if below else None, queue_id)
        above, below = parent_of(home), [base_name(home), *below]
        if above == home or len(below) > 2:
            return found
        home = above


def are_queues(directory: str) -> bool:
    """Whether a directory that is called `consumequeue` or so is that of all queues, and no store's root of that name.

    A topic may be called `index` too: what is in its directory are queues, named by numbers.
    """
    parts = (join(directory, name) for name in _PARTS)
    return not any(disk.is_directory(part) and not any(map(disk.is_directory, numbered(part))) for part in parts)


def kind_of_directory(path: str) -> str | None:
    """The kind of a directory, by its place and what is in it; None: none of ours."""
    with scan(path) as entries:
        below = {entry.name: leads_to_directory(entry) for entry in entries}
    place, name = queue_place(path), base_name(absolute(path))
    of_parts = any(below.get(part) for part in _PARTS) and (place is None or place.topic is not None)
    if of_parts or (below.get("checkpoint") is False and "lock" in below):
        return "store"
    if place is not None and place.queue_id is not None:
        return _OF_QUEUES[base_name(place.home)]
    if place is not None and base_name(place.home) != "consumequeue_ext":
        return "consumequeues"
    numbers = [one for one, is_directory in below.items() if not is_directory and number_of(one) is not None]
    mapped = {kind_of_file(join(path, one)) for one in numbers if offset_of(one) is not None}
    if mapped:
        of_log, of_queue = "commitlog-file" in mapped, "consumequeue-file" in mapped
        return "commitlog-dir" if of_log else "consumequeue" if of_queue else None
    if numbers or (name == "index" and not below):
        return "index-dir" if name == "index" or any(map(is_index_name, numbers)) else None
    return "commitlog-dir" if name == "commitlog" and not below else None


def is_left_of_store(root: str) -> bool:
    """Whether a directory has anything that only a store has, however little is left of it."""
    return any(disk.is_there(join(root, name)) for name in _LEFT)


def is_root(directory: str) -> bool:
    """Whether it is surely the root of a store: by two names, of which one is no other program's, or by what is in one.

    A directory that is called `index`, or an empty one called `commitlog`, may be anybody's.
    """
    names = names_seen(directory)
    known = names & (OWN_NAMES | COMMON_NAMES)
    if (len(known) > 1 and not known.isdisjoint(OWN_NAMES)) or {"checkpoint", "lock"} <= known:
        return True
    homes = [join(directory, name) for name in names.intersection(QUEUES)]
    topics = [join(home, topic) for home in homes for topic in names_seen(home)]
    return (
        any(offset_of(one) is not None for one in names_seen(join(directory, "commitlog")))
        or any(map(is_index_name, names_seen(join(directory, "index"))))
        or any(queue_id_of(one) is not None for topic in topics for one in names_seen(topic))
    )


def names_seen(directory: str) -> set[str]:
    """What is in a directory; nothing, where it is none or may not be listed."""
    with without_unread(directory):
        return set(list_names(directory))
    return set()


def is_rocksdb(directory: str) -> bool:
    """Whether RocksDB keeps its files there, or what is left of them: any one of them shows it."""
    names = filter(_ROCKSDB.fullmatch, names_in(directory)) if disk.is_directory(directory) else ()
    return any(disk.is_file(join(directory, name)) for name in names)


# ---- files


def kind_of_file(path: str) -> str | None:
    """The kind of a file, by its place, its name and its content; None: none of ours, or an index file by content."""
    directory, name = split(absolute(path))
    beginning, above = beginning_of(path), base_name(directory)
    if beginning == "message":
        return "commitlog-file"
    if offset_of(name) is not None:
        place = queue_place(directory)
        if place is not None and place.queue_id is not None:
            return f"{_OF_QUEUES[base_name(place.home)]}-file"
        of_log = above == "commitlog" or beginning == "zeros"
        return "commitlog-file" if of_log else "consumequeue-file" if beginning == "unit" else None
    if is_index_name(name) or (above == "index" and number_of(name) is not None):
        return "index-file"
    if name == "checkpoint" and size_of(path) == CHECKPOINT_SIZE:
        return "checkpoint"
    plain = name.removesuffix(".bak")
    return "consumer-offsets" if plain in _OFFSETS else "config-file" if plain in _CONFIG else None


def beginning_of(path: str | os.PathLike[str]) -> Beginning | None:
    """What is at the beginning of a file of a commit log or a consume queue, which have the same names.

    "message": a frame or a blank. "unit": two units in order, or one and nothing more. "zeros": nothing yet.
    """
    with reading(path) as file:
        head = file.read(2 * QUEUE_UNIT_SIZE)
    if len(head) >= _FRAME.size and _FRAME.unpack_from(head)[1] in _MAGICS:
        return "message"
    if not any(head[:QUEUE_UNIT_SIZE]):
        return "zeros"
    return "unit" if _are_units(head) else None


def _are_units(head: bytes) -> bool:
    (first, size), (second, next_size) = _UNIT.iter_unpack(head.ljust(2 * QUEUE_UNIT_SIZE, b"\0"))
    nothing_more = (second, next_size) == (0, 0)
    return bool(first >= 0 and size > 0 and (nothing_more or (second >= first and next_size > 0)))
