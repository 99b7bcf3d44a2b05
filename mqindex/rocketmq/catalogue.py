"""Every kind of finding that verify, rebuild and repair make of a RocketMQ store: severity, meaning, and what to do.

A kind whose severity or hint depends on the situation has one name for each situation; the usual one comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from mqindex.report import Kind

_REWRITE_INDEX = "`mqindex repair` replaces this file from the log"
_REWRITE_QUEUE = "`mqindex repair` writes this queue's files from the log"
_MORE_LOG = "if another volume or a DLedger log has the log's later part, bring it back before either"
_ASKED = (
    "but only with --cut-damaged (cut_damaged=True): first restore the log file from a copy or a replica, where there "
    "is one"
)
_RESTORE = "restore the file from a copy or a replica, where there is one"
_OTHER_LENGTH = "if the setting is another, give it with --broker-conf; if the file was cut, restore it"
_OWN_DIRECTORY = "move it elsewhere, or give the log a directory of its own below the volume's root"
_NO_START = "a broker without any queue reads its log again when it starts, but 5.5.0 left out the log's first file"

# fmt: off
# ---- a rebuild of several stores

NOT_REBUILT = Kind("not-rebuilt", "error",
    "A store among several was not rebuilt: nothing of it was published. The others were not held up.",
    "mend that, then rebuild it alone, to that place")

# ---- the start of a broker

STRAY_LOG_FILE = Kind("stray-log-file", "error",
    "Something in the log's directory is not a log file, and brokers may refuse to start (5.1 and later ignore "
    "directories; what brokers before 4.5 do is not known).",
    f"{{who}} refuses to start: {_OWN_DIRECTORY}", stops_start=True)
LOADED_AS_LOG_FILE = replace(STRAY_LOG_FILE,
    hint=f"a broker loads it as a log file, after all others by its name: {_OWN_DIRECTORY}", stops_start=False)
DUPLICATE_LOG_FILE = replace(STRAY_LOG_FILE,
    hint="a broker loads both, one after the other: move the one that is incomplete elsewhere", stops_start=False)
STRAY_QUEUE_FILE = Kind("stray-queue-file", "error",
    "Something in a queue's directory is not a file of the queue, and brokers may refuse to start (5.1 and later "
    "ignore directories; what brokers before 4.5 do is not known).",
    "{who} refuses to start: `mqindex repair` moves it to the backup", "consumequeue", stops_start=True)
STRAY_EXT_FILE = replace(STRAY_QUEUE_FILE, hint="{who} refuses to start: move it elsewhere", mended_by=None)
IGNORED_QUEUE_FILE = replace(STRAY_EXT_FILE, severity="warning", hint="the broker ignores it", stops_start=False)
LOADED_AS_QUEUE_FILE = replace(STRAY_QUEUE_FILE,
    hint="a broker loads it as a file of the queue, where its name sorts: `mqindex repair` moves it to the backup",
    stops_start=False)
LOG_FILE_EMPTY = Kind("log-file-empty", "error",
    "A log file has no bytes, and brokers before 5.1.3 do not start.",
    "{who} refuses to start: delete it", stops_start=True)
QUEUE_FILE_EMPTY = Kind("queue-file-empty", "error",
    "A file of a queue has no bytes, and brokers before 5.1.3 do not start.",
    "{who} refuses to start: delete it", stops_start=True)
LOG_FILE_LENGTH = Kind("log-file-length", "error",
    "The length of a log file is not mappedFileSizeCommitLog, and no broker starts (what brokers before 4.5 do is not "
    "known).",
    f"{{who}} refuses to start: {_OTHER_LENGTH}", stops_start=True)
QUEUE_TYPE = Kind("queue-type", "error",
    "The type of a queue is not the type of its topic, and brokers 5.0 and later do not start.",
    "the broker refuses to start: restore config/topics.json, or move this directory elsewhere", stops_start=True)
CHECKPOINT_NO_OFFSET = Kind("checkpoint-no-offset", "error",
    "After an unclean exit enableAcceleratedRecovery starts at an offset that is not in the checkpoints of brokers "
    "before 5.5, and brokers 5.5 and later do not start.",
    "start the broker once with enableAcceleratedRecovery=false", stops_start=True)
_NO_5_0_START = "brokers 5.0 and later refuse to start"
TIMER_WHEEL_LENGTH = Kind("timer-wheel-length", "error",
    "The wheel of the messages that are delivered at a given time is not as long as it must be, and brokers 5.0 and "
    "later do not start.",
    f"{_NO_5_0_START}: restore it, or move it elsewhere: the broker makes one from the end of timerlog, and delays "
    "that are only in older files of timerlog may be lost", stops_start=True)
TIMER_LOG_LENGTH = Kind("timer-log-length", "error",
    "A file of the timer log is not as long as it must be, or not of its name, and brokers 5.0 and later do not start.",
    "{who} refuses to start: if the setting mappedFileSizeTimerLog is another, give it with --broker-conf; if the file "
    "was cut, restore it, or move timerwheel, timerlog and config/timercheck elsewhere: the broker makes them from the "
    "log, and delivers again what was due", stops_start=True)
TIMER_LOG_STRAY = replace(TIMER_LOG_LENGTH, hint="{who} refuses to start: move it elsewhere")
COMPACTION_STRAY = Kind("compaction-stray", "error",
    "A directory that is no queue is among those of the log of a compacted topic, or a file that is not named by a "
    "number is in one, and brokers 5.1 and later do not start.",
    "brokers 5.1 and later refuse to start: {remedy}", stops_start=True)
COMPACTION_UNLIKE = Kind("compaction-unlike", "warning",
    "The log of a compacted topic has other files than its queue. With some that are missing brokers 5.1 and later do "
    "not start; others they delete.",
    "whether a broker starts is not known: restore what is missing, or move the queue's directories in compactionLog "
    "and in compactionCq elsewhere", stops_start=True)
NOT_WRITABLE = Kind("not-writable", "error",
    "The owner of the log has no permission to write a file that a broker opens for writing, so it does not start.",
    "a broker opens every file for writing: chown or chmod those that it cannot open, {count} in all", stops_start=True)
ELSEWHERE = Kind("files-elsewhere", "info",
    "The files are not on this machine: locks, owners, links and holes are not known there.",
    "no lock, owner, link or hole was looked at; copy the store here, or mount its place, to have them looked at too")
RESULT_CHANGED = Kind("result-changed", "error",
    "A file of a result in an object store has other bytes than its rebuild gave it.",
    "its checksum is not the one in mqindex.json; rebuild it, to another place")
LOCK_UNREADABLE = Kind("lock-unreadable", "error",
    "The store's lock is not a file, and no broker starts.",
    "no broker starts with it: move it elsewhere", stops_start=True)
QUEUES_DELETED_AT_NEXT_START = Kind("queues-deleted-at-next-start", "error",
    "The commit log is empty, and a broker that starts with an empty log deletes every consume queue.",
    "is its volume mounted? Bring the log back before a broker starts")
DELETED_AT_NEXT_START = Kind("deleted-at-next-start", "error",
    "The last exit was unclean and the checkpoint is older than this index file, so the next start deletes the file.",
    "`abort` exists: the next start deletes this file, and of its {entries} {lost}; `mqindex repair` moves the "
    "checkpoint up", "index")
WRITTEN_AGAIN_AT_NEXT_START = replace(DELETED_AT_NEXT_START, severity="warning",
    hint="`abort` exists: the next start deletes this file and writes its {entries} again; `mqindex repair` moves "
         "the checkpoint up")
DELETED_AFTER_A_KILL = replace(DELETED_AT_NEXT_START, severity="info",
    hint="a broker is running; if it were killed now, its next start would delete this file", mended_by=None)
LOG_CUT_AT_NEXT_START = Kind("log-cut-at-next-start", "error",
    "A broker that starts reads the newest files of its log again. At the first bad record it cuts the log and its "
    "queues, and deletes all later files.",
    f"{{who}} cuts the log here and deletes {{messages}} and {{files}}: before it, {_RESTORE}")
LOG_CUT_FOR_A_CRC = replace(LOG_CUT_AT_NEXT_START,
    hint="{who} cuts the log here and deletes {messages} and {files}, unless checkCRCOnRecover=false is set: before "
         f"it, {_RESTORE}")
LOG_NOT_CONFIRMED = Kind("log-not-confirmed", "error",
    "With duplicationEnable=true and no controller nothing of the log is confirmed when a broker starts: 4.9.3 waited "
    "for ever, and 5.5.0 wrote over its log from the beginning.",
    "set duplicationEnable=false before the start", stops_start=True)
NOT_A_FILE = Kind("not-a-file", "error",
    "A directory is in the place of a small file that a broker writes when it starts, and brokers 5.0 and later do not "
    "start.",
    f"{_NO_5_0_START}: move it elsewhere", stops_start=True)
NOT_A_DIRECTORY = Kind("not-a-directory", "error",
    "Something else is in the place of the directory of the index, of the queues or of config/, and a broker can "
    "write none of their files.",
    "move it elsewhere; if it is a link, check whether a volume is not mounted", stops_start=True)

# ---- the commit log

LOG_DAMAGE: Final[Mapping[str, Kind]] = {
    name: Kind(
        f"log-{name}", "error", meaning, f"{{stretch}}; {_RESTORE}"
    )
    for name, meaning in {
        "bad-magic": "A record of the log has no magic code: the log is damaged there.",
        "bad-size": "A record of the log has an impossible size: the log is damaged there.",
        "bad-length": "A part of a record is longer than the record: the log is damaged there.",
        "foreign": "A record contains another offset than its own: it is stale or from another log.",
        "bad-crc": "A message's body does not match its checksum; its keys and its unit are used nevertheless.",
        "truncated": "A log file ends inside a record.",
        "bad-delay": "A message's delay level is not a number, which stops a broker's dispatch.",
    }.items()
}
LOG_MISSING = Kind("log-missing", "error",
    "The commit log, or one of its directories, is missing, but the index or queues have entries for it.",
    "is its volume mounted? commitlog= (--commitlog) says where the log is; a broker before 4.9.4 keeps it in "
    "~/store/commitlog where its configuration sets only storePathRootDir")
LOG_PERHAPS_MISSING = replace(LOG_MISSING, severity="warning",
    hint="is its volume mounted? If these messages have not expired, mount it before a broker starts: one that runs "
         "without them deletes their index files and their files of the queues within minutes")
LOG_ENDS_EARLY = replace(LOG_PERHAPS_MISSING,
    hint="what is built ends with the log: if another volume or a DLedger log has its later part, these messages are "
         "not in it")
FILE_UNREAD = Kind("file-unread", "warning",
    "A file of the index or the queues, which nothing is built from, cannot be read.",
    "{error}; what is built does not need it, but whether the log has its messages is not known")
LOG_FILE_MISSING = Kind("log-file-missing", "error",
    "One or more files are missing inside the log, with their messages.",
    "the messages between the two files are not in this store: is a directory of the log left out (--commitlog)? Else "
    f"{_RESTORE}")
LOG_FILE_DELETED = replace(LOG_FILE_MISSING,
    hint="it was deleted while the log was read, and files before it still exist")
LOG_FILE_MISSING_AT_END = replace(LOG_FILE_MISSING,
    hint="the start of {who} goes on to the file after it and never ends: restore the file from a copy or a replica; "
         "without one, move the file that the broker made in advance elsewhere: {next}", stops_start=True)
FRAMES_AFTER_LOG_END = Kind("frames-behind-log-end", "warning",
    "Complete records follow the first bad one of the last file; no broker indexes them.",
    "{stretch}: a broker cuts the log here and never indexes them; compare the log with a replica first")
STALE_BYTES_AFTER_LOG_END = Kind("stale-bytes-behind-log-end", "info",
    "Old bytes follow the log's end; new messages overwrite them.")
LOG_EXPIRED_MEANWHILE = Kind("log-expired-meanwhile", "info",
    "A broker deleted the log's oldest files while they were read; they are left out.",
    "nothing to do: {files} of them are not in this report")
LOG_GREW_MEANWHILE = Kind("log-grew-meanwhile", "info",
    "Messages were written while the store was read. It is compared up to where its log ended at first.",
    "somebody writes the store; it is compared up to this end, later messages are left out")

# ---- the index

INDEX_FAULTS: Final[Mapping[str, Kind]] = {
    name: Kind(f"index-{name.replace('_', '-')}", "error", meaning, _REWRITE_INDEX, "index")
    for name, meaning in {
        "index_count": "The header of an index file counts more entries than the file can hold, or a negative number.",
        "begin_phy_offset": "The header's first offset is not that of the first entry.",
        "end_phy_offset": "The header's last offset is not that of the last entry.",
        "end_timestamp": "The header's last time is not that of the last entry.",
        "slot": "A slot points to an entry that the file does not have.",
        "slot_head": "A slot does not point to its newest entry, so look-ups miss entries.",
        "key_hash": "An entry's key hash is negative; no broker writes such a hash.",
        "time_diff": "An entry's time is before the first entry's; no broker writes such a time.",
        "prev_index": "An entry does not point to the previous one of its slot, so look-ups miss entries.",
    }.items()
} | {
    "hash_slot_count": Kind(
        "index-hash-slot-count", "warning", "The header's count of used slots is wrong; nothing ever reads it.",
        "no broker reads it; brokers before 4.7.1 count entries there, so that one file which two brokers wrote may "
        "have any count between"
    )
}
"""By the names of `IndexFile.check`."""
INDEX_SIZE = Kind("index-size", "error", "The length of an index file does not match the geometry.", _REWRITE_INDEX,
    "index")
INDEX_UNREADABLE = Kind("index-unreadable", "error",
    "An index file cannot be read.", f"{{error}}; {_REWRITE_INDEX}", "index")
INDEX_IS_DIRECTORY = replace(INDEX_UNREADABLE,
    hint="a broker loads no index file after it, and 5.1 and later do not start; `mqindex repair` moves it to the "
         "backup", stops_start=True)
INDEX_BEYOND_LOG = Kind("index-beyond-log", "error",
    "An index file has entries for offsets after the log's end.",
    f"a broker that does not delete it at its start indexes no message before its last entry; {_REWRITE_INDEX}; "
    f"{_MORE_LOG}", "index")
INDEX_BEYOND_DAMAGE = replace(INDEX_BEYOND_LOG,
    hint="the log ends at a bad record, with whole messages behind it: after the next start a broker indexes no "
         f"message before this file's last entry. `mqindex repair` replaces the file, {_ASKED}")
INDEX_EMPTY = Kind("index-empty", "error",
    "An index file has no entries, but is not the last one, or not seeded by the one before it.",
    _REWRITE_INDEX, "index")
WRONG_ENTRY = Kind("wrong-entry", "error",
    "An entry has another hash, offset or time than its message in the log.",
    _REWRITE_INDEX, "index")
FOREIGN_ENTRY = Kind("foreign-entry", "error", "An entry is for no message of this log.", _REWRITE_INDEX, "index")
WRONG_TIME = Kind("wrong-time", "error",
    "A time in the header, or of the first entry, is not what a broker writes for this log.",
    _REWRITE_INDEX, "index")
MISSING_ENTRIES = Kind("missing-entries", "error",
    "Messages of the log have no index entries.",
    "`mqindex repair` writes them", "index")
MISSING_WITHOUT_FILES = replace(MISSING_ENTRIES,
    hint="`mqindex repair` writes them; if the broker is set to write none, its broker.conf (--broker-conf) says so")
MISSING_IN_FILE = replace(MISSING_ENTRIES, hint=_REWRITE_INDEX)
INDEX_OVERLAP = Kind("index-overlap", "error",
    "Two index files hold the same entries.",
    "another file has these entries too; `mqindex repair` moves this one to the backup", "index")
INDEX_ORDER = Kind("index-order", "warning",
    "The order of index files by name is not the log's order; a broker answers from the last name first.",
    "the broker loads by name and answers from the last name first; after an unclean end it would index again what "
    "comes after the last one by name")
STRAY_FILE = Kind("stray-file", "warning",
    "A file or directory that a broker ignores is among its own.",
    "harmless: move it elsewhere, if nobody needs it here")
INDEX_ENTRIES_EXPIRED = Kind("index-entries-expired", "info",
    "Entries are for messages that are no longer in the log.",
    "their messages are below the log's minimum offset")
INDEX_ENTRIES_OF_DAMAGED_LOG = Kind("index-entries-of-damaged-log", "info",
    "Entries are for messages in missing or damaged parts of the log. They stay: a part that is restored needs them.",
    _RESTORE)
MESSAGE_INDEXED_TWICE = Kind("message-indexed-twice", "info",
    "A message has its entries twice: a broker indexes its last message again after a crash.",
    "nothing to do: a look-up may give this message twice")
INDEX_SWITCHED_OFF = Kind("index-switched-off", "info",
    "The broker is configured to write no index files.",
    "a broker with this configuration writes no index files")

# ---- settings that are not known

_GIVE = "nothing in the store shows it: give {option}"
GEOMETRY_UNKNOWN = Kind("geometry-unknown", "warning",
    "Index files are to be written, and nothing shows their number of slots and entries.",
    _GIVE)
BROKER_VERSION_UNKNOWN = Kind("broker-version-unknown", "warning",
    "Messages have TAGS, and nothing shows whether the broker indexes them.",
    _GIVE)
TAGS_UNKNOWN = Kind("tags-unknown", "warning",
    "A broker was replaced by one of the other rule for TAGS while messages were written whose index entries are lost. "
    "Nothing shows which of them had entries of TAGS.",
    "`mqindex repair` writes no entries of TAGS there")
TAGS_UNKNOWN_AT_END = replace(TAGS_UNKNOWN, hint="`mqindex repair` writes there what the broker's version says")
QUEUE_FILE_SIZE_UNKNOWN = Kind("queue-file-size-unknown", "warning",
    "Queues are to be written, and nothing shows the length of their files.",
    _GIVE)

FILE_LENGTH_UNKNOWN = Kind("file-length-unknown", "info",
    "Files do not have the default length, and nothing shows whether another length is set. If it is not set, all of "
    "these files were cut, and no broker starts.",
    _GIVE, stops_start=True)
DELAY_LEVEL_UNKNOWN = Kind("delay-level-unknown", "warning",
    "Units of delayed messages are to be written, and nothing shows when these are to be delivered.",
    _GIVE)

# ---- the consume queues

QUEUE_MISSING = Kind("queue-missing", "error",
    "A queue that has messages in the log has no files.",
    "`mqindex repair` writes them", "consumequeue")
QUEUES_MISSING = replace(QUEUE_MISSING, hint=f"`mqindex repair` writes them; {_NO_START}")
TOPIC_DELETED = Kind("topic-deleted", "warning",
    "A topic that has messages in the log has no queue, and config/topics.json no longer lists it: it was deleted.",
    "it was deleted, and its messages are in no queue until they expire; repair leaves it. If it was not, restore "
    "config/topics.json first")
QUEUE_SIZE = Kind("queue-size", "error",
    "The length of a queue's file is not the one that the broker has set, and no broker starts (what brokers before "
    "4.5 do is not known).",
    f"a broker refuses to start; {_REWRITE_QUEUE}", "consumequeue", stops_start=True)
OTHER_QUEUE_SIZE = replace(QUEUE_SIZE, hint="{who} refuses to start: is the setting another?", mended_by=None)
QUEUE_FILE_MISSING = Kind("queue-file-missing", "error",
    "One or more files are missing inside a queue.",
    _REWRITE_QUEUE, "consumequeue")
QUEUE_FILE_BLANK = Kind("queue-file-blank", "error",
    "The last file of a queue begins without a unit, as a power cut leaves it. A broker that starts counts a message "
    "there that is none, and later ones get offsets that are too large; 5.0 to 5.4 may not start.",
    "`mqindex repair` removes it: the log has no message for it", "consumequeue", stops_start=True)
ONLY_QUEUE_FILE_BLANK = replace(QUEUE_FILE_BLANK, severity="warning",
    hint="nothing else says which offset the queue's next message gets, so `mqindex repair` leaves it", mended_by=None)
QUEUE_UNREADABLE = Kind("queue-unreadable", "error",
    "A queue's file cannot be read.", f"{{error}}; {_REWRITE_QUEUE}", "consumequeue")
QUEUE_BEYOND_LOG = Kind("queue-beyond-log", "error",
    "Units are for offsets after the log's end; a broker cuts them off when it starts.",
    f"{{units}} after the log's end: a broker cuts them off, and `mqindex repair` does so too; {_MORE_LOG}",
    "consumequeue")
QUEUE_BEYOND_DAMAGE = replace(QUEUE_BEYOND_LOG,
    hint=f"the log ends at a bad record, with whole messages behind it: the next start cuts these units off, and "
         f"`mqindex repair` does so too, {_ASKED}")
MISSING_UNITS = Kind("missing-units", "error",
    "Messages of the log have no unit in their queue, so consumers miss them.",
    _REWRITE_QUEUE, "consumequeue")
WRONG_UNIT = Kind("wrong-unit", "error", "A unit has another offset, size or tag than its message.", _REWRITE_QUEUE,
    "consumequeue")
MANY_WRONG_UNITS = replace(WRONG_UNIT, hint=f"{{units}} of this queue differ; {_REWRITE_QUEUE}")
OFFSETS_SERVED_TWICE = Kind("offsets-served-twice", "error",
    "A queue has messages whose queue offsets other messages in the log have too.",
    "a broker that had lost the queue's end gave these queue offsets again. Consumers get the later messages now; a "
    "repair puts the earlier ones in their places, and no queue has the later ones then. `mqindex repair` refuses "
    "this, unless --replace-served (replace_served=True) allows it", "consumequeue")
EARLIER_SERVED = replace(OFFSETS_SERVED_TWICE,
    hint="the queue offsets started again at 0: the topic was deleted and created again, or a broker had lost the "
    "queue. Then a broker built the queue from the log: consumers get these earlier messages now, and miss later ones. "
    "A repair puts the later ones in their places, and no queue has the earlier ones then. `mqindex repair` refuses "
    "this, unless --replace-served (replace_served=True) allows it")
WRONG_EXT_UNIT = Kind("wrong-ext-unit", "error",
    "Extension units do not match their messages, so consumers filter them wrongly.",
    f"consumers filter these messages wrongly; {_REWRITE_QUEUE}", "consumequeue")
FOREIGN_UNIT = Kind("foreign-unit", "error",
    "Units are for no message of this queue.",
    f"{{units}} for no message of this queue; {_REWRITE_QUEUE}", "consumequeue")
QUEUE_ENDS_BLANK = replace(FOREIGN_UNIT,
    hint="the queue ends in {units} for no message. A broker that starts so gives the queue no message until its log "
    f"has reached byte 2147483647, and older ones (4.9.3) give none to any queue; {_REWRITE_QUEUE}")
INVALID_UNIT = Kind("invalid-unit", "error",
    "Places between units hold none; a broker would end the queue there.",
    f"{{places}} without a unit, where a broker would end the queue; {_REWRITE_QUEUE}", "consumequeue")
QUEUE_NAME = Kind("queue-name", "error",
    "The name of a queue's file is not a multiple of its length, or the name of a topic cannot be a directory's.",
    _REWRITE_QUEUE, "consumequeue")
IMPOSSIBLE_QUEUE_NAME = replace(QUEUE_NAME, severity="warning", hint="{units} in no file", mended_by=None)
NO_DELIVER_TIME = Kind("no-deliver-time", "warning",
    "Units of delayed messages hold a tag's hash instead of the time of delivery, as brokers 4.9.2 to 4.9.8 write "
    "them after a crash: they are delivered at once.",
    "brokers 4.9.2 to 4.9.8 write these after an unclean exit and deliver at once; `mqindex repair` writes the times",
    "consumequeue")
QUEUE_OFFSET_HOLE = Kind("queue-offset-hole", "warning",
    "No message of the log has these queue offsets; they are filled with blank units.",
    "they are filled with blank units, so that every other message keeps its queue offset")
QUEUE_OFFSET_JUMP = Kind("queue-offset-jump", "warning",
    "Messages have queue offsets that are far too large; their units are written at the next place.",
    "their units are written at the next place, as a broker writes them")
QUEUE_OFFSET_REPEATED = Kind("queue-offset-repeated", "warning",
    "Messages have the queue offset of an earlier one; the first one stays.",
    "the first message stays, as in a broker")
QUEUE_OFFSET_IMPOSSIBLE = Kind("queue-offset-impossible", "warning",
    "Messages have queue offsets that no file can hold, or say of their batch what cannot be; they are in no queue.",
    "no broker puts these messages into a queue: read them by their place or key, if they are needed")
QUEUE_BEGAN_AGAIN = Kind("queue-began-again", "warning",
    "The offsets of a queue start again at 0; the older messages are in no queue.",
    "these queue offsets were given twice: right if the topic was deleted and created again, and then this stays until "
    "the log no longer has the older messages; otherwise a writer lost its queues, and nobody consumes these messages")
TOPIC_CREATED_AGAIN = replace(QUEUE_BEGAN_AGAIN, severity="info",
    hint="the topic was deleted and created again; the older units are left out")
BATCH_QUEUE_MISSING = Kind("batch-queue-missing", "error",
    "A batch queue that has messages in the log has no files.",
    f"`mqindex repair` writes them; {_NO_START}", "consumequeue")
BATCH_QUEUE_BEHIND = Kind("batch-queue-behind", "error",
    "A batch queue ends before the last message that the log has for it.",
    f"{_REWRITE_QUEUE}; a broker reads its log on from where the furthest of all queues ends, and does not write them",
    "consumequeue")
QUEUE_UNITS_EXPIRED = Kind("queue-units-expired", "info",
    "Units are for messages that are no longer in the log.",
    "their messages are below the log's minimum offset")
QUEUE_UNITS_OF_DAMAGED_LOG = Kind("queue-units-of-damaged-log", "info",
    "Units are for messages in damaged parts of the log.",
    _RESTORE)
QUEUE_MIN_OFFSET_STALE = Kind("queue-min-offset-stale", "info",
    "All messages of a queue have expired, and its minimum offset has not moved.",
    "every message of this queue is below the log's minimum; brokers before 5.0 do not move its min offset")
ROCKSDB_INCOMPLETE = Kind("rocksdb-incomplete", "error",
    "The RocksDB database of the consume queues, or of topics and groups, is missing, or lacks CURRENT or the MANIFEST "
    "that it names.",
    "restore the whole directory from a copy or a replica, where there is one; mqindex neither reads nor writes it",
    stops_start=True)
ROCKSDB_GONE = replace(ROCKSDB_INCOMPLETE,
    hint="a broker makes it anew from its whole log when it starts (5.5.0 does); until then no message is consumed",
    stops_start=False)
QUEUES_ELSEWHERE = Kind("queues-elsewhere", "info",
    "The consume queues are in RocksDB, which is not read.",
    "the consume queues are in RocksDB (storeType=defaultRocksDB): they are neither compared nor written")
QUEUES_PERHAPS_ELSEWHERE = replace(QUEUES_ELSEWHERE, hint=
    "RocksDB's files are beside queues: which of them the broker reads is not known, and the queues are neither "
    "compared nor written; give the broker's own --broker-conf FILE (storeType, rocksdbCQDoubleWriteEnable)")
COMPACTION_NOT_COMPARED = Kind("compaction-not-compared", "info",
    "The store has compacted topics, whose own logs and queues are not compared.",
    "consumers of compacted topics (cleanup.policy=COMPACTION) read these files, which only a broker writes: it adds "
    "what it dispatches, and nothing that its other queues have. Whether messages are missing here is not known")
COMPACTION_NOT_WRITTEN = Kind("compaction-not-written", "info",
    "The store has compacted topics, whose own logs and queues no rebuild writes.",
    "consumers of compacted topics (cleanup.policy=COMPACTION) read these files, to which a broker adds nothing that "
    "its queues have. Where messages may be missing here, let the broker write its queues itself: it adds these too")
TOPICS_ELSEWHERE = Kind("topics-elsewhere", "info",
    "Topics and groups of consumers are in RocksDB, which is not read.",
    "topics and groups are in RocksDB: whether each queue has the type of its topic, and which groups are behind, is "
    "not known")
STALE_QUEUE_BYTES = Kind("stale-queue-bytes", "info",
    "Old bytes follow a queue's end; new units overwrite them.",
    "nothing to do")

# ---- a repair that is taken back

WRITTEN_SINCE = Kind("written-since-repair", "warning",
    "A file was written to after the repair; what was written is not in the file that is back in its place.",
    "what was written is in the new backup only: `mqindex repair`, before a broker starts, writes it from the log")
LINKED_DIRECTORY = Kind("linked-directory", "warning",
    "The directory of a topic or queue is a link, or index or queues are behind one that another user made for root. A "
    "broker follows it, a repair does not.",
    "no repair begins: move the files into a directory of this name, or mount their volume there")

# ---- the small files

CHECKPOINT_UNREADABLE = Kind("checkpoint-unreadable", "error",
    "The checkpoint is not a file, or cannot be read.",
    "{error}; remove the file: after an unclean exit the broker then reads the whole log")
CHECKPOINT_IS_DIRECTORY = replace(CHECKPOINT_UNREADABLE,
    hint="no broker starts with it; without a checkpoint a broker starts", stops_start=True)
CHECKPOINT_GARBAGE = Kind("checkpoint-garbage", "error",
    "A time in the checkpoint is not a time.",
    "not a time; remove the file: after an unclean exit the broker then reads the whole log")
CHECKPOINT_SIZE = Kind("checkpoint-size", "warning",
    "The checkpoint is not 4096 bytes long; the broker makes it so.",
    "the broker extends or cuts it to its length, with zeros")
CHECKPOINT_AHEAD = Kind("checkpoint-ahead", "warning",
    "The checkpoint is later than the log; after an unclean exit a broker would leave messages out.",
    "the log lost its end, or this is another store's; after an unclean exit messages would be left out")
CHECKPOINT_OFFSET_AHEAD = replace(CHECKPOINT_AHEAD, hint="the log ends earlier")
TIMER_CHECKPOINT_AHEAD = Kind("timer-checkpoint-ahead", "warning",
    "The timer's checkpoint (config/timercheck) is beyond the end of the timer's queue. A broker before 5.3.2 then "
    "delivers none of the messages that come into this queue until it reaches that offset; later ones set it back.",
    "unless the timer log shows another offset, a broker before 5.3.2 delivers no timed message until the queue "
    "reaches this one: if the store was restored, move config/timercheck, timerwheel and timerlog elsewhere")
CHECKPOINT_MISSING = Kind("checkpoint-missing", "info",
    "There is no checkpoint; after an unclean exit the broker reads the whole log.",
    "nothing to do: the start takes longer, and makes a new one")
CHECKPOINT_BEHIND = Kind("checkpoint-behind", "info",
    "The checkpoint is where the broker starts to read its log after its unclean exit.",
    "no damage: the broker reads its log again from there on")
SIDE_FILE_INVALID = Kind("side-file-invalid", "error",
    "A file of config/ is not JSON, or not what it should hold.",
    "there is no .bak to use: the broker starts without; restore the file")
SIDE_FILES_INVALID = replace(SIDE_FILE_INVALID,
    hint="the .bak is no better ({backup}): {start}; restore the file", stops_start=True)
SIDE_FILE_HAS_BACKUP = replace(SIDE_FILE_INVALID, severity="warning",
    hint="the broker uses {backup}, which is one save older")
SIDE_FILE_WITHOUT_CONTENT = replace(SIDE_FILE_INVALID,
    hint="{who} take it for a file without entries, whatever the .bak holds: restore the file")
TOPICS_MISSING = Kind("side-file-missing", "warning",
    "A file that a broker keeps in config/ is missing, and others are there.",
    "the broker does not know these topics, and refuses who consumes them (CODE 17) until the file is restored, or a "
    "producer makes each topic anew, with the default number of queues")
CONSUMER_OFFSETS_MISSING = replace(TOPICS_MISSING,
    hint="groups begin anew, where their consumers are set to: at the end of a queue they leave messages out, at its "
         "beginning they get all again; restore the file")
DELAY_OFFSETS_MISSING = replace(TOPICS_MISSING,
    hint="the broker delivers all delayed messages of its log again; restore the file")
SIDECAR_UNUSED = Kind("sidecar-unused", "warning",
    "The fence of an optimised index file does not fit it, or the key filter is damaged, and it is not used: look-ups "
    "in a cold file read more pages.",
    "{what}; delete it, or optimize the index again (mqindex optimize)")
SIDECAR_WRONG = Kind("sidecar-wrong", "error",
    "The fence or the key filter of an optimised index file leads past entries: look-ups with mqindex miss them.",
    "delete it: no broker reads it")
SIDECAR_BEHIND = Kind("sidecar-behind", "info",
    "Entries were appended to an optimised index file; its fence and the key filter are no longer used for it.",
    "optimize the index again (mqindex optimize) when its newest file is cold")
SIDECAR_ALONE = Kind("sidecar-alone", "warning",
    "A file beside the index is not the fence of any index file, nor a key filter that knows one.",
    "its index file is gone, or it is no file of mqindex's: delete it")


class OffsetKinds(NamedTuple):
    """The kinds of one file of offsets."""

    beyond_queue: Kind
    expired: Kind
    without_queue: Kind
    more: Kind


def _offsets(name: str, beyond: str, expired: str, without: str, whose: str) -> OffsetKinds:
    return OffsetKinds(
        Kind(
            f"{name}-beyond-queue",
            "warning",
            beyond,
            "the queue lost its end, or this is another store's; messages up to there would be left out",
        ),
        Kind(f"{name}-expired", "info", expired, "{messages} gone unread; the consumer continues at the min offset"),
        Kind(f"{name}-without-queue", "info", without, "nothing to do, if the queue was deleted on purpose"),
        Kind(
            f"{name}-more",
            "info",
            f"More offsets of {whose} are out of range than are listed.",
            "{offsets} of this file out of range; the first are listed",
        ),
    )


CONSUMER_OFFSET: Final = _offsets(
    "consumer-offset",
    "A group has consumed more messages than its queue holds.",
    "Messages that a group has not consumed are gone.",
    "A group has an offset in a queue that the store does not have.",
    "groups",
)
DELAY_OFFSET: Final = _offsets(
    "delay-offset",
    "More delayed messages have been delivered than their queue holds.",
    "Delayed messages that were not delivered are gone.",
    "There is an offset for a delay level that has no queue.",
    "delay levels",
)

OF_LATER_MESSAGES: Final = frozenset(
    kind.name
    for kind in (
        FRAMES_AFTER_LOG_END,
        STALE_BYTES_AFTER_LOG_END,
        CHECKPOINT_AHEAD,
        CHECKPOINT_OFFSET_AHEAD,
        CONSUMER_OFFSET.beyond_queue,
        CONSUMER_OFFSET.without_queue,
        DELAY_OFFSET.beyond_queue,
        DELAY_OFFSET.without_queue,
    )
)
"""What a store that is being written shows too: its log is read first, and these may speak of messages since."""

CATALOGUE: Final = Kind.by_name(globals())
"""Kind -> what is said of it: of each name the usual severity and hint first, then those of other situations."""
