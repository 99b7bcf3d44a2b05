"""The question by which the brokers of two neighbouring releases show that a row of `brokers.py` changes between them.

Stores are copies of basic-493: two log files of 64 KiB, the first with a blank record at its byte 65447.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqindex.rocketmq import Checkpoint

__all__ = ["QUESTIONS", "Question"]

SECOND = "00000000000000065536"
BLANK = 65447
LOG, WHOLE = "log ", "log 0 126980"
LAST_QUEUE_FILE = "consumequeue/BBTopic/0/00000000000000001000"
SIZES = (
    "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=1000", "maxHashSlotNum=100", "maxIndexNum=400",
    "mapedFileSizeCommitLog=65536", "mapedFileSizeConsumeQueue=1000",  # as brokers before 4.5.2 name them
    "diskMaxUsedSpaceRatio=95", "fileReservedTime=876000",
)  # fmt: skip


def nothing(_store: Path) -> None:
    """The store stays as it is."""


@dataclass(frozen=True)
class Question:
    """`asked`: in words. `does`: the answer of a broker that does what the row says; `releases`: who is asked.

    `words`: the question to the driver; of a store (`harm` is done to it first) the settings and what to do.
    `picked`: a pattern of the lines of the answer that count; none: what `seen` finds in the store afterwards.
    """

    asked: str
    does: str
    releases: Sequence[str]
    words: Sequence[str] = ()
    picked: str = "load "
    harm: Callable[[Path], None] | None = None
    seen: Callable[[Path], str] | None = None


def patched(path: str, at: int, content: bytes) -> Callable[[Path], None]:
    """Other bytes in a file."""

    def harm(store: Path) -> None:
        with open(store / path, "r+b") as file:
            file.seek(at)
            file.write(content)

    return harm


def unclean(*harms: Callable[[Path], None], checkpoint: Checkpoint | None = None) -> Callable[[Path], None]:
    """The broker was killed; its checkpoint is this one, or not there."""

    def harm(store: Path) -> None:
        for each in harms:
            each(store)
        (store / "abort").touch()
        (store / "checkpoint").unlink()
        if checkpoint is not None:
            (store / "checkpoint").write_bytes(checkpoint.to_bytes())

    return harm


def blank(size: int) -> Callable[[Path], None]:
    return unclean(patched("commitlog/00000000000000000000", BLANK, struct.pack(">i", size)))


def bad_second_record(store: Path) -> None:
    """Of the first log file: who reads this file cuts the log there."""
    first = store / "commitlog" / "00000000000000000000"
    at = int.from_bytes(first.read_bytes()[:4])
    patched("commitlog/00000000000000000000", at + 4, b"\0\0\0\0")(store)


def hole(store: Path) -> None:
    """The second log file is where the third one should be."""
    (store / "commitlog" / SECOND).rename(store / "commitlog" / f"{131072:020d}")


def no_files(store: Path) -> None:
    """A store of its own: nothing was ever written."""
    for path in sorted(store.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def timer_ahead(store: Path) -> None:
    """A store of its own, whose timer had read nine messages of which the queue knows nothing."""
    no_files(store)
    (store / "config").mkdir()
    (store / "config" / "timercheck").write_bytes(struct.pack(">4q", 0, 0, 9, 9).ljust(4096, b"\0"))


def not_confirmed(store: Path) -> None:
    """The queues are lost, and the second log file is confirmed up to its byte 4464."""
    shutil.rmtree(store / "consumequeue")
    unclean(checkpoint=Checkpoint(confirm_phy_offset=70000))(store)


def not_empty(path: str, size: int) -> Callable[[Path], None]:
    return lambda store: (store / path).write_bytes(bytes(size))


def directory(path: str) -> Callable[[Path], None]:
    return lambda store: (store / path).mkdir()


def process_id(store: Path) -> str:
    kept = "abort.bak" if (store / "abort.bak").exists() else "no abort.bak"
    return f"abort of {'some' if (store / 'abort').stat().st_size else 'no'} bytes, {kept}"


def there(path: str) -> Callable[[Path], str]:
    return lambda store: "there" if any(store.glob(path)) else "not there"


def magic(store: Path) -> str:
    """Of the first record: its version."""
    return (store / "commitlog" / "00000000000000000000").read_bytes()[4:8].hex()


def entries(store: Path) -> str:
    """In the first index file; its header counts one more, if there are some."""
    count = int.from_bytes(min((store / "index").iterdir()).read_bytes()[36:40])
    return "1 entry" if count == 2 else f"{max(count - 1, 0)} entries"


def of_class(asked: str, name: str, releases: Sequence[str]) -> Question:
    return Question(asked, f"{name} is there", releases, ("class", name), picked="")


def dispatched(before: str, after: str, *topics: str) -> Question:
    """A message of each topic has its offset in a queue of its own beside."""
    puts = [f"put:{topic}:1:INNER_MULTI_DISPATCH:%LMQ%{topic}:INNER_MULTI_QUEUE_OFFSET:0" for topic in topics]
    return Question(
        f"messages of {' and '.join(topics)}, each with its offset in a further queue",
        ", ".join(f"queue %LMQ%{topic} 0 0 1" for topic in topics), (before, after),
        ("enableLmq=true", "enableMultiDispatch=true", *puts), "queue %LMQ%", no_files,
    )  # fmt: skip


STORE = "org.apache.rocketmq.store."
MANAGER = "org.apache.rocketmq.broker."
IN_4_9 = ("4.9.7", "5.0.0")
QUESTIONS = {
    "BACK_TO_MIN": Question(
        "a request at 900 of a queue that begins at 0", "get OFFSET_OVERFLOW_BADLY next 0", ("4.9.3", "4.9.4"),
        ("get:BBTopic:900",), "get ", nothing,
    ),
    "BATCH_QUEUES": of_class("its class", f"{STORE}queue.BatchConsumeQueue", IN_4_9),
    "BLANK_ENDS_STOP": Question(
        "the last file of a queue is all zeros", "load false", (*IN_4_9, "5.4.0", "5.5.0"),
        harm=not_empty(LAST_QUEUE_FILE, 1000),
    ),
    "COMPACTION": of_class("its class", f"{STORE}kv.CompactionStore", ("5.0.0", "5.1.0")),
    "CONFIGS_OF_5": of_class("the class of topicQueueMapping.json", f"{MANAGER}topic.TopicQueueMappingManager", IN_4_9),
    "CONFIRMED_DISPATCHED": Question(
        "enableControllerMode=true, an unclean end without queues, the checkpoint's confirmPhyOffset is 70000",
        "queue BBTopic 0 0 23", ("5.1.0", "5.1.1"), ("enableControllerMode=true",), "queue BBTopic ", not_confirmed,
    ),
    "DIRECTORIES_STOP": Question(
        "commitlog/lost+found", "load false", ("5.0.0", "5.1.0"), harm=directory("commitlog/lost+found"),
    ),
    "EMPTY_FILES_STOP": Question(
        "an empty file after the last one of a queue", "load false", ("5.1.1", "5.1.3"),
        harm=not_empty("consumequeue/BBTopic/0/00000000000000002000", 0),
    ),
    "FASTJSON_2": Question(
        "topics.json is []", "threw JSONException", ("5.3.3", "5.4.0"),
        ("decode", f"{MANAGER}topic.TopicConfigManager", "[]"), picked="",
    ),
    "FRAMES_AS_BODIES": Question(
        "maxMessageSize 1000, a body of 990 bytes", "put MESSAGE_ILLEGAL", ("4.9.3", "4.9.4"),
        ("maxMessageSize=1000", "put:BBTopic:990"), "put ", nothing,
    ),
    "FRAMES_LIMITED": Question(
        "the longest frame, if maxMessageSize is 1000", "66536 bytes", ("4.9.4", "4.9.5"), ("frames", "1000"), "",
    ),
    "GROUPS_NOT_BLANK": Question(
        "subscriptionGroup.json is blank", "threw JSONException", ("5.0.0", "5.1.0"),
        ("decode", f"{MANAGER}subscription.SubscriptionGroupManager", " \n"), picked="",
    ),
    "INDEX_FILES_REQUIRED": Question(
        "a directory in index/, named like a file", "load false", ("5.0.0", "5.1.0"),
        harm=directory("index/99991231235959999"),
    ),
    "LARGE_BLANK_CUTS": Question(
        "the size of the first file's blank is 2^31-1, after an unclean end", f"log 0 {BLANK}", ("5.3.1", "5.3.2"),
        picked=LOG, harm=blank(2**31 - 1),
    ),
    "LOG_IN_PLACES": of_class("its class", f"{STORE}MultiPathMappedFileQueue", ("4.9.1", "4.9.2")),
    "LOG_IN_ROOT": Question(
        "storePathCommitLog, if only storePathRootDir=/data is set", "[/data/commitlog]", ("4.9.3", "4.9.4"),
        ("setting", "storePathRootDir", "/data", "getStorePathCommitLog"), picked="",
    ),
    "LONG_TOPICS": Question(
        "the record of a topic of 128 bytes", "daa320ab", ("5.0.0", "5.1.0"),
        (f"put:{'t' * 128}:1", "stop"), harm=no_files, seen=magic,
    ),
    "MAPED_NAMES": Question(
        "mapedFileSizeCommitLog=4096", "[4096]", ("4.5.1", "4.5.2"),
        ("setting", "mapedFileSizeCommitLog", "4096", "getMapedFileSizeCommitLog"), picked="",
    ),
    "NEGATIVE_BLANK_CUTS": Question(
        "the size of the first file's blank is -16, after an unclean end", f"log 0 {BLANK}", ("5.5.0", "5.5.1"),
        picked=LOG, harm=blank(-16),
    ),
    "OFFSETS_NOT_BLANK": Question(
        "consumerOffset.json is blank", "threw JSONException", IN_4_9,
        ("decode", f"{MANAGER}offset.ConsumerOffsetManager", " \n"), picked="",
    ),
    "PROCESS_ID_KEPT": Question(
        "abort after a start on a store with abort", "abort of some bytes, abort.bak", IN_4_9,
        harm=lambda store: (store / "abort").write_text("123"), seen=process_id,
    ),
    "RECOVERS_FEW_FILES": Question(
        "an unclean end, commitLogRecoverMaxNum=1, the first of two log files is bad", WHOLE,
        ("5.3.3", "5.4.0"), ("commitLogRecoverMaxNum=1",), LOG, unclean(bad_second_record),
    ),
    "RECOVERS_FROM_OFFSET": Question(
        "an unclean end, no times in the checkpoint, its logicsPhysicalOffset is in the second log file, the first one "
        "is bad", WHOLE, ("5.4.0", "5.5.0"), (), LOG,
        unclean(bad_second_record, checkpoint=Checkpoint(logics_physical_offset=70000)),
    ),
    "RECOVERS_FROM_QUEUES": Question(
        "a clean end, the first of two log files is bad", WHOLE, ("5.3.1", "5.3.2"), (), LOG,
        bad_second_record,
    ),
    "RETRY_TOPICS_DISPATCHED": dispatched("5.1.0", "5.1.1", "%RETRY%g"),
    "ROCKSDB": of_class("its class", f"{STORE}RocksDBMessageStore", ("5.1.4", "5.2.0")),
    "ROCKSDB_OF_INDEXES": Question(
        "rocksdbstore/ after a start", "there", ("5.3.3", "5.4.0"), harm=nothing, seen=there("rocksdbstore"),
    ),
    "SYSTEM_TOPICS_DISPATCHED": dispatched("5.1.4", "5.2.0", "rmq_sys_other"),
    "TAGS_INDEXED": Question(
        "the index of a message with TAGS and without keys", "1 entry", ("5.3.3", "5.4.0"),
        ("put:BBTopic:1:TAGS:t", "stop"), harm=no_files, seen=entries,
    ),
    "TEXTS_TRIMMED": Question(
        "blanks around a text of the settings", "[/data]", ("5.1.4", "5.2.0"),
        ("setting", "storePathRootDir", " /data ", "getStorePathRootDir"), picked="",
    ),
    "TIMER_OFFSET_CORRECTED": Question(
        "config/timercheck has offset 9 of a queue that ends at 1", "timer at 1", ("5.3.1", "5.3.2"),
        ("mappedFileSizeTimerLog=1048576", "put:rmq_sys_wheel_timer:1", "timer"), "timer ", timer_ahead,
    ),
    "TIMERS": of_class("their class", f"{STORE}timer.TimerMessageStore", IN_4_9),
    "UNSEPARATED": Question(
        "the properties of a message with KEYS k", "6 characters", ("4.9.0", "4.9.1", "5.1.4", "5.2.0"),
        ("properties",), picked="",
    ),
    "WAITING_TOPICS_DISPATCHED": dispatched("5.1.1", "5.1.3", "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"),
    "WAITS_FOR_DISPATCH": Question(
        "a start where the second of three log files is missing", "log 0 192516, does not end",
        IN_4_9, (), "log |started|does not end", hole,
    ),
    "WAITS_IF_TOLD": Question(
        "the same with recheckReputOffsetFromCq=false", "started", IN_4_9,
        ("recheckReputOffsetFromCq=false",), "started", hole,
    ),
}  # fmt: skip
"""By the name of the row."""
