"""Every kind of finding that verify, rebuild and repair make of a RocketMQ store, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mqindex.report import Kind, Severity, catalogue_rows

__all__ = ["CATALOGUE", "rows"]

_FILE = "`mqindex repair` replaces the file by one from the log"
_QUEUE = "`mqindex repair` writes the queue's files from the log"
_ALONE = "nothing need be done"
_OFFSETS = "see whether the queue lost its end, or the offsets are another store's"
_RESTORE = "restore the file from a copy or a replica, where there is one"


def _kinds(severity: Severity, hint: str | None, meanings: Mapping[str, str]) -> dict[str, Kind]:
    return {name: Kind(severity, meaning, hint) for name, meaning in meanings.items()}


CATALOGUE: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        # ---- the start of a broker
        **_kinds(
            "error",
            "move it elsewhere, or give the log a directory of its own below the volume's root",
            {
                "stray-log-file": "Something that is no file of the log stands in its directory, and no broker "
                "starts (from 5.1 on directories are passed over).",
                "stray-queue-file": "Something that is no file of a queue stands in its directory, and no broker "
                "starts (from 5.1 on directories are passed over).",
            },
        ),
        **_kinds(
            "error",
            "delete it",
            {
                "log-file-empty": "A file of the log has no byte, and brokers before 5.1.3 do not start.",
                "queue-file-empty": "A file of a queue has no byte, and brokers before 5.1.3 do not start.",
            },
        ),
        **_kinds(
            "error",
            "give the length with --broker-conf; where the file was cut, restore it",
            {
                "log-file-length": "A file of the log has not the length of mappedFileSizeCommitLog: no broker starts.",
            },
        ),
        **_kinds(
            "error",
            "restore config/topics.json, or move the directory elsewhere",
            {
                "queue-type": "A queue is of another type than its topic, and brokers from 5.0 on do not start.",
            },
        ),
        **_kinds(
            "error",
            "start the broker once with enableAcceleratedRecovery=false",
            {
                "checkpoint-no-offset": "After an unclean exit enableAcceleratedRecovery begins at an offset that a "
                "checkpoint of brokers before 5.5 does not have, and brokers from 5.5 on do not start.",
            },
        ),
        **_kinds(
            "error",
            "chown or chmod it as its neighbours are",
            {
                "not-writable": "The owner of the log may not write a file that a broker opens to write, so it does "
                "not start.",
            },
        ),
        **_kinds(
            "error",
            "move it elsewhere",
            {
                "lock-unreadable": "The store's lock is no file, and brokers do not start.",
            },
        ),
        **_kinds(
            "error",
            "look whether the log's volume is mounted before a broker starts",
            {
                "queues-deleted-at-next-start": "The commit log is empty, and a broker that starts so deletes every "
                "consume queue.",
            },
        ),
        **_kinds(
            "error",
            "`mqindex repair` moves the checkpoint up",
            {
                "deleted-at-next-start": "The last exit was unclean and the checkpoint is older than this index "
                "file, so the next start deletes it; a warning where all its entries are known to be written "
                "again, an info while a broker runs.",
            },
        ),
        **_kinds(
            "error",
            "move it elsewhere; where it is a link, see whether a volume is not mounted",
            {
                "not-a-directory": "Something else stands where the directory of the index or of the queues belongs, "
                "and a broker can write none of their files.",
            },
        ),
        # ---- the commit log
        **_kinds(
            "error",
            _RESTORE,
            {
                "log-bad-magic": "A record of the log has no magic code: the log is damaged there.",
                "log-bad-size": "A record of the log has a size that cannot be: the log is damaged there.",
                "log-bad-length": "A part of a record is longer than the record: the log is damaged there.",
                "log-foreign": "A record says that it stands at another place: it is stale or from another log.",
                "log-bad-crc": "A message's body does not have its checksum; its keys and its unit count nevertheless.",
                "log-truncated": "The log's file ends within a record.",
                "log-bad-delay": "A message's delay level is no number, which ends a broker's dispatch.",
                "log-missing": "The commit log, or a directory of it, is not there, though index or queues are.",
                "log-file-missing": "Between two files of the log one or more are missing, with their messages.",
            },
        ),
        **_kinds(
            "warning",
            "compare the log with a replica before a broker starts: it cuts the log there",
            {
                "frames-behind-log-end": "Whole records stand behind the first bad one of the last file; no broker "
                "indexes them.",
            },
        ),
        **_kinds(
            "info",
            _ALONE,
            {
                "log-expired-meanwhile": "A broker deleted the log's oldest files while they were read; "
                "they are left out.",
                "stale-bytes-behind-log-end": "Bytes of an earlier life stand behind the log's end; new messages "
                "overwrite them.",
            },
        ),
        # ---- the index
        **_kinds(
            "error",
            _FILE,
            {
                "index-size": "An index file's length is not that of the geometry.",
                "index-unreadable": "An index file cannot be read.",
                "index-index-count": "An index file's header counts more entries than it can hold, or fewer than none.",
                "index-begin-phy-offset": "The header's first offset is not that of the first entry.",
                "index-end-phy-offset": "The header's last offset is not that of the last entry.",
                "index-end-timestamp": "The header's last time is not that of the last entry.",
                "index-slot": "A slot leads to an entry that the file does not have.",
                "index-slot-head": "A slot does not lead to its newest entry, so look-ups miss entries.",
                "index-key-hash": "An entry's key hash is negative, which no broker writes.",
                "index-time-diff": "An entry's time is before the file's first one, which no broker writes.",
                "index-prev-index": "An entry does not lead to the one before it in its slot, so look-ups miss "
                "entries.",
                "index-beyond-log": "An index file leads behind the log's end.",
                "index-empty": "An index file has no entry, though it is not the last, or not seeded by the one "
                "before it.",
                "wrong-entry": "An entry says another hash, offset or time than its message in the log.",
                "foreign-entry": "An entry leads to no message with such a key in this log.",
                "wrong-time": "A time of the header, or of the first entry, is not what a broker writes for this log.",
            },
        ),
        **_kinds(
            "error",
            "`mqindex repair` moves it to the backup",
            {
                "index-overlap": "Two index files hold the same entries.",
            },
        ),
        **_kinds(
            "error",
            "`mqindex repair` writes them",
            {
                "missing-entries": "Messages of the log have no index entries.",
            },
        ),
        **_kinds(
            "warning",
            _ALONE,
            {
                "index-hash-slot-count": "The header's count of used slots is wrong; nothing reads it back.",
                "index-order": "Index files do not lie in the log's order by name; a broker answers the last name "
                "first.",
                "stray-file": "A file or directory that a broker passes over stands among its own.",
            },
        ),
        **_kinds(
            "info",
            _ALONE,
            {
                "index-entries-expired": "Entries lead to messages that the log does not hold any more.",
                "message-indexed-twice": "A message has its entries twice: a broker indexes its last message again "
                "after a crash.",
            },
        ),
        **_kinds(
            "warning",
            "give what is asked for; `mqindex repair` does not guess it",
            {
                "geometry-unknown": "Index files are to be written, and nothing tells their slots and entries.",
                "broker-version-unknown": "Messages have TAGS, and nothing tells whether the broker indexes them.",
                "queue-file-size-unknown": "Queues are to be written, and nothing tells how long their files are.",
            },
        ),
        **_kinds(
            "error",
            "batch queues are not written; a broker without any queue reads its whole log again at its start",
            {"batch-queue-missing": "A batch queue of which the log holds messages has no files."},
        ),
        **_kinds("info", _ALONE, {"index-switched-off": "The broker is configured to write no index files."}),
        # ---- the consume queues
        **_kinds(
            "error",
            _QUEUE,
            {
                "queue-missing": "A queue of which the log holds messages has no files.",
                "queue-size": "A queue's file is not as long as mappedFileSizeConsumeQueue says, and brokers do not "
                "start.",
                "queue-file-missing": "Between two files of a queue one or more are missing.",
                "queue-unreadable": "A queue's file cannot be read.",
                "queue-beyond-log": "Units lead behind the log's end; a broker cuts them off when it starts.",
                "missing-units": "Messages of the log have no unit in their queue, so consumers miss them.",
                "wrong-unit": "A unit says another offset, size or tag than its message.",
                "wrong-ext-unit": "Extension units do not agree with their messages, so consumers filter them wrongly.",
                "foreign-unit": "Units lead to no message of this queue.",
                "invalid-unit": "Places between units hold none; a broker would end the queue there.",
            },
        ),
        **_kinds(
            "warning",
            None,
            {
                "queue-name": "A queue's file has a name that is no multiple of its length, or a topic a name that "
                "is none.",
                "no-deliver-time": "Delayed messages have a tag's hash in place of the time of delivery, as brokers "
                "4.9.2 to 4.9.8 "
                "write it after a crash: they are delivered at once.",
                "queue-offset-hole": "Queue offsets that no message of the log has; they are filled with blank units.",
                "queue-offset-jump": "Messages have queue offsets far beyond; their units stand at the next place.",
                "queue-offset-repeated": "Messages have a queue offset that an earlier one has; the first one stays.",
                "queue-offset-impossible": "Messages have queue offsets that no file can hold; they are in no queue.",
                "batch-queue": "A topic's queues are batch queues, which are not compared and not rebuilt.",
            },
        ),
        **_kinds(
            "error",
            "right if the topic was deleted and created again; else nobody consumes the older messages",
            {
                "queue-began-again": "A queue's offsets begin at 0 again and were given twice; the older messages are "
                "in no queue. Information where no offset was given twice.",
            },
        ),
        **_kinds(
            "info",
            _ALONE,
            {
                "queue-units-expired": "Units lead to messages that the log does not hold any more.",
                "queue-units-of-damaged-log": "Units lead into damaged stretches of the log.",
                "queue-min-offset-stale": "All messages of a queue have expired, and its minimum offset has not moved.",
                "queues-elsewhere": "The consume queues are in RocksDB, which is not read.",
                "stale-queue-bytes": "Bytes of an earlier life stand behind a queue's end; new units overwrite them.",
            },
        ),
        # ---- the small files
        **_kinds(
            "error",
            "remove it: after an unclean exit the broker then reads the whole log",
            {
                "checkpoint-unreadable": "The checkpoint is no file, or cannot be read.",
                "checkpoint-garbage": "A time of the checkpoint is no time.",
            },
        ),
        **_kinds(
            "error",
            "restore it from a copy, or remove both to start without",
            {
                "side-file-invalid": "A file of config/ is no JSON; a warning where its .bak is.",
            },
        ),
        **_kinds(
            "warning",
            "see whether the log lost its end, or the checkpoint is another store's",
            {
                "checkpoint-size": "The checkpoint is not 4096 bytes long; the broker makes it so.",
                "checkpoint-ahead": "The checkpoint is later than the log; after an unclean exit messages would be "
                "left out.",
            },
        ),
        **_kinds(
            "warning",
            _OFFSETS,
            {
                "consumer-offset-beyond-queue": "A group has consumed more than its queue holds.",
                "delay-offset-beyond-queue": "More delayed messages are delivered than their queue holds.",
            },
        ),
        **_kinds(
            "info",
            _ALONE,
            {
                "checkpoint-missing": "There is no checkpoint; after an unclean exit the broker reads the whole log.",
                "checkpoint-behind": "The checkpoint is where the broker begins to read its log after its unclean "
                "exit.",
                "consumer-offset-expired": "Messages that a group has not consumed are gone.",
                "consumer-offset-without-queue": "A group has an offset in a queue that the store has not.",
                "consumer-offset-more": "More offsets of groups are out of range than are told.",
                "delay-offset-expired": "Delayed messages that were not delivered are gone.",
                "delay-offset-without-queue": "There is an offset for a delay level that has no queue.",
                "delay-offset-more": "More offsets of delay levels are out of range than are told.",
            },
        ),
    }
)
"""Kind -> its usual severity, its meaning, and what to do."""


def rows() -> list[tuple[str, str, str, str]]:
    """(kind, severity, meaning, hint), for the documents."""
    return catalogue_rows(CATALOGUE)
