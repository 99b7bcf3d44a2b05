"""Every kind of finding that verify, rebuild and repair make of Kafka's partitions: severity, meaning, and what to do.

A kind whose severity or hint depends on the situation has one name for each situation; the usual one comes first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from mqindex.kafka import brokers
from mqindex.kafka.layout import IndexKind
from mqindex.report import Kind

_REPAIR = "`mqindex repair` writes it from the log"
_RESTORE = "restore the segment from another replica"
_UNSEEN = "a broker does not check it when it starts, and its recovery only where the index gets an entry"
_STUCK = "a consumer gets no further than this batch"
_NOT_RECOVERED = (
    "after a clean stop a log with its .index is not recovered: a broker does not start, or appends behind what is bad"
)
_DAMAGED = "{left_out}; good batches behind: {good}"
_CHOICE = (
    "Restore the segment from another replica, or have consumers seek past it; `mqindex repair --cut-damaged` makes "
    "the next start cut it here, and gives these up"
)
_OFFLINE = "a broker puts the log dir offline, and stops if it has no other"
_LEFT, _RAFT = brokers.LOST_INDEXES_LEFT.brokers, brokers.AFTER_RAFT.brokers

# fmt: off
# ---- the log of a segment


class TailKinds(NamedTuple):
    """What a recovery cuts at the end of a log's good batches, by what follows."""

    followed: Kind  # by other segments
    zeros_followed: Kind
    last: Kind  # of the partition, and something follows the bad batch
    unfinished: Kind  # the bad batch is the last thing in the log, as a crash leaves it
    closed: Kind  # of the partition, and its broker was stopped cleanly: no recovery cuts it
    damaged: Kind  # good batches follow, and no recovery cuts the log
    damaged_last: Kind  # good batches follow, and the next start cuts the log of the partition's last segment
    damaged_followed: Kind  # the same of another one


def _tail(name: str, meaning: str, *, stops_start: bool = False) -> TailKinds:
    cut = "a broker's recovery cuts {bytes} here"
    hint = f"{cut}, and drops every later segment; {_RESTORE}"
    followed = Kind(name, "error", meaning, hint, stops_start=stops_start)
    return TailKinds(
        followed,
        replace(followed, hint=f"{cut}; they are zeros, as in a preallocated log"),
        replace(followed, hint=cut),
        replace(followed, severity="warning", hint=cut),
        replace(followed, hint=f"{_NOT_RECOVERED}; {_RESTORE}, or remove .kafka_cleanshutdown: {cut} then"),
        replace(followed, hint=f"{_DAMAGED}. A broker serves these, if the .index leads there, and a consumer "
            f"stops at the damage; a recovery would cut all from here on. {_CHOICE}"),
        replace(followed, hint=f"{_DAMAGED}. The next start of a broker cuts the log here, with the good batches: "
            "copy the log before"),
        replace(followed, hint=f"{_DAMAGED}. The next start of a broker cuts the log here, with the good batches, "
            f"and drops every later segment: copy them before; {_RESTORE}"),
    )


_TAIL: Final = _tail("log-tail",
    "A part of a batch, or zeros, follow the last complete batch; a broker's recovery cuts them.")
LOG_ENDS_IN_ZEROS = replace(_TAIL.zeros_followed, severity="info")
_BAD_CRC: Final = _tail("log-bad-crc",
    "A batch's checksum is wrong: a broker's recovery cuts the log there, and drops all later segments.")
_BAD_LENGTH: Final = _tail("log-bad-length",
    "A batch's length is impossible: a broker's recovery cuts the log there, and drops all later segments.",
    stops_start=True)
LOG_TAILS: Final = {"tail": _TAIL, "bad-crc": _BAD_CRC, "bad-length": _BAD_LENGTH}
"""By `BatchFault.kind`, the name of what is wrong with the first batch that is not good."""

LOG_OFFSET_ORDER = Kind("log-offset-order", "error",
    "A batch's offsets do not follow those of the batch before, or are below the segment's base offset, or do not "
    "match a broker's snapshot of the log's end; no checksum covers a base offset.",
    f"{_UNSEEN}; followers refuse the batch; {_RESTORE}")
LOG_BELOW_BASE = replace(LOG_OFFSET_ORDER, hint=f"{_UNSEEN}; {_RESTORE}")
LOG_NOT_AT_SNAPSHOT = replace(LOG_OFFSET_ORDER,
    hint=f"a snapshot says that the log once ended there; {_UNSEEN}; {_RESTORE}")
LOG_MAGIC = Kind("log-magic", "error",
    "A batch has a format that no broker knows; no checksum covers it, and consumers fail there.",
    f"a broker reads it as 1 or 2; {_STUCK}; {_RESTORE}")
LOG_COUNT = Kind("log-count", "error",
    "A batch claims more records than it has offsets, or a negative number; its consumers fail.",
    f"{_STUCK}; {_RESTORE}")
LOG_LEADER_EPOCH = Kind("log-leader-epoch", "error",
    "The leader epoch of batches decreases, or is not the one that the partition's leader-epoch-checkpoint has for "
    "their offsets: replicas that diverged are cut at the wrong place.",
    f"no checksum covers it, and a broker that starts does not check it; replicas are cut by it: {_RESTORE}")
LOG_RECORDS = Kind("log-records", "error",
    "A batch's checksum is right, but its records cannot be read to the last one.",
    f"{{what}}; {_STUCK}")
LOG_REFUSED = Kind("log-refused", "error",
    "A broker's recovery fails on this log: it empties the segment, or does not start.",
    "{what}; a broker that recovers this segment empties it, or does not start", stops_start=True)
LOG_CANNOT_BE_READ = replace(LOG_REFUSED, hint="{what}; {hint}")
LOG_OVERFLOWS = replace(LOG_REFUSED,
    hint="{what}; a broker that recovers this segment splits it, and keeps every batch", stops_start=False)
LOG_FILLS_INDEX = replace(LOG_REFUSED, severity="warning",
    hint="{what}, and a broker recovers this segment: it does not start where index.interval.bytes is {interval} and "
         "segment.index.bytes {size}; more for the latter, in the topic's settings, lets it", stops_start=True)
LOG_NOT_A_FILE = Kind("log-not-a-file", "error",
    "A directory, or a link without a target, has the name of a segment's log, and a broker ignores it: the segment's "
    "records are missing.",
    "restore the file")
SEGMENT_NAME = Kind("segment-name", "error",
    "A log has an offset in its name, but not as 20 digits: a broker that starts makes an empty segment of that "
    "offset, and reads nothing of this file.",
    "a broker that starts makes {meant} for it, which is empty, and is the log's end or hides records: rename the file "
    "to that, if it is this partition's, or move it elsewhere")
OTHER_NAME_OF_SEGMENT = replace(SEGMENT_NAME, severity="warning",
    hint="a broker does not read it: {meant} has the name that counts; move it elsewhere")
OTHER_NAME_OF_INDEX = replace(SEGMENT_NAME, severity="warning",
    hint="a broker does not read it, and deletes it where no log of this offset is; move it elsewhere")
OTHER_NAME_OF_SNAPSHOT = replace(SEGMENT_NAME, severity="warning",
    hint="a broker takes it for the producers' state at this offset, mqindex does not: rename it to {meant}, or move "
         "it elsewhere")
SEGMENT_BEYOND_OFFSETS = replace(SEGMENT_NAME,
    hint="no log reaches this offset, and a broker takes it for the log's end: move it elsewhere")
SEGMENT_OVERLAP = Kind("segment-overlap", "error",
    "A segment has offsets that belong to the next one.",
    "the next segment begins there; one of the two has offsets that are not its own")
SEGMENT_GAP = Kind("segment-gap", "warning",
    "Offsets inside the log are in no segment.",
    "a segment is missing or was emptied, and a broker serves the log without it: restore it; by "
    "cleaner-offset-checkpoint this broker never compacted the log, so such a gap is innocent only in a copy of a log "
    "that another one compacted")
SEGMENT_GAP_OR_COMPACTED = replace(SEGMENT_GAP, severity="info",
    hint="a segment is missing or was emptied, or its records were compacted: cleaner-offset-checkpoint does not tell "
         "of these offsets")
LOG_END = Kind("log-end", "warning",
    "The log ends before an offset that it had reached according to a broker's snapshot: records are lost.",
    f"{_RESTORE}: a start that goes on at an earlier offset deletes the snapshot, the last trace of these records")
LOG_MAX_TIMESTAMP = Kind("log-max-timestamp", "warning",
    "Records of a batch are later than its header says; searches by time miss them.",
    "search for such records by offset, or from an earlier time on")

# ---- offset and time index


class IndexKinds(NamedTuple):
    """What both can have."""

    length: Kind
    order: Kind
    order_while_open: Kind
    unwritten: Kind
    unwritten_while_open: Kind
    missing: Kind
    beyond_log: Kind
    beyond_open_log: Kind
    offset: Kind
    stale_offset: Kind
    origin: Kind


_CUT_STAYS = "what was cut from an open index stays in its file"


def _index(name: str, unwritten: str, beyond: str, missing: Kind, offset: str, origin: str) -> IndexKinds:
    order = Kind(f"{name}-order", "error", "Entries that are not in order follow the others.", _REPAIR, "index")
    zeros = Kind(f"{name}-unwritten", "error", unwritten, f"a broker takes zeros as entries; {_REPAIR}", "index")
    behind = Kind(f"{name}-beyond-log", "error", beyond, _REPAIR, "index")
    passed = Kind(f"{name}-offset", "error", offset, _REPAIR, "index")
    return IndexKinds(
        Kind(f"{name}-length", "error",
            "The file's length is not a multiple of an entry's, or more than any broker reads.", _REPAIR, "index"),
        order,
        replace(order, severity="warning", hint=_CUT_STAYS, mended_by=None),
        zeros,
        replace(zeros, severity="info", hint="no broker has closed this file yet", mended_by=None),
        missing,
        behind,
        replace(behind, severity="warning", hint=None, mended_by=None),
        passed,
        replace(passed, severity="warning", hint=_CUT_STAYS, mended_by=None),
        Kind(f"{name}-origin", "warning", origin),
    )


OFFSET_INDEX: Final = _index("offset-index",
    "Zeros follow the entries of a closed index, and a broker takes them as entries.",
    "An entry is for an offset or position after the log's end, as a truncation leaves it in an open index.",
    Kind("offset-index-missing", "error",
        f"The file is missing; brokers recover the segment when they start, but not those {_LEFT}.",
        f"`mqindex repair` writes it; a broker reads the whole segment for it, but not those {_LEFT}", "index"),
    "An entry's position is after batches that its offset belongs to: look-ups miss them.",
    "An entry's offset is not one of the batch at its position; look-ups are right.")
NO_OFFSETS_INDEXED = replace(OFFSET_INDEX.missing, severity="info",
    hint="a broker makes it when it needs it first, and it would have no entry yet", mended_by=None)
OFFSET_INDEX_POSITION = Kind("offset-index-position", "error",
    "An entry's position is in the middle of a batch.", _REPAIR, "index")
STALE_POSITION = replace(OFFSET_INDEX_POSITION, severity="warning", hint=_CUT_STAYS, mended_by=None)
OFFSET_INDEX_END = Kind("offset-index-end", "error",
    "From the last entry on a broker that starts after a clean stop finds another end of the log than it has.",
    f"a broker that starts appends with offsets from there on, which records have already; {_REPAIR}", "index")
OFFSET_INDEX_END_OF_LOG = replace(OFFSET_INDEX_END,
    hint="a broker that starts appends with offsets from there on; the index is right, the log is damaged, and no "
    "repair changes it: what to do is said of the log", mended_by=None)
OFFSET_INDEX_EMPTY = Kind("offset-index-empty", "warning",
    "There are no entries where some are expected: every look-up reads the log from its beginning, and is right. A "
    "follower that got the segment in one append leaves it so.",
    f"every look-up reads the log from its beginning; {_REPAIR}", "index")
OFFSET_INDEX_PERHAPS_LOST = Kind("offset-index-perhaps-lost", "info",
    "There are no entries, but several in the time index: the segment was closed before each was due, or they were "
    "lost. Which of the two, only index.interval.bytes tells.",
    "none is missing if index.interval.bytes is {most} or more, and brokers closed the segment {closed} times; else "
    "give --index-interval-bytes, and verify tells whether some are; look-ups read the log from its beginning, and are "
    "right")
TIME_INDEX: Final = _index("time-index",
    "Zeros follow the entries of a closed index, and a broker takes them as entries, so that retention may delete the "
    "segment.",
    "An entry is later than every record, or for an offset after the log's end, as a truncation leaves it in an open "
    "index.",
    Kind("time-index-missing", "error",
        "The file is missing; a broker that has the .index makes an empty one, for good.",
        "a broker creates an empty one, and then answers searches by time wrongly; `mqindex repair` writes it",
        "index"),
    "An entry leads searches by time past records that they look for.",
    "An entry is not for the first batch with its time; searches are right.")
TIMES_LOST_WITH_OFFSETS = replace(TIME_INDEX.missing,
    hint=f"the .index is missing too: brokers make both anew when they start, those {_LEFT}, empty; "
         "`mqindex repair` writes it")
NO_TIMES_INDEXED = replace(TIME_INDEX.missing, severity="info",
    hint="a broker creates an empty one, which is correct here", mended_by=None)
TIME_INDEX_EMPTY = Kind("time-index-empty", "error",
    "There are no entries, but records have times: searches by time begin in the wrong segment, and retention uses the "
    "file's time.",
    f"searches by time and retention use the last entry; {_REPAIR}", "index")
TIME_INDEX_INCOMPLETE = Kind("time-index-incomplete", "error",
    "The last entry is not the segment's greatest time, by which searches choose a segment and retention deletes.",
    f"searches by time and retention use the last entry; {_REPAIR}", "index")
INDEXES: Final = {IndexKind.OFFSET: OFFSET_INDEX, IndexKind.TIME: TIME_INDEX}
INDEX_DIFFERS = Kind("index-unlike-rebuilt", "info",
    "Indexes give the right answers, but a rebuild would write others, as followers, the cleaner, older versions and "
    "other settings do, and a broker that is stopped before an entry is due.",
    "look-ups are answered correctly; another index.interval.bytes, version, kind of append, or a stop, is the reason")

# ---- the transaction index

_ABORTED_READ = f"consumers that read only committed records get aborted ones; {_REPAIR}"
TRANSACTION_INDEX_LENGTH = Kind("transaction-index-length", "error",
    "The file's length is not a multiple of an entry's.", _REPAIR, "index")
TRANSACTION_INDEX_VERSION = Kind("transaction-index-version", "error",
    "An entry has a version that no broker writes, and a broker fails to load it.", _REPAIR, "index", stops_start=True)
VERSION_BESIDE_BAD_LOG = replace(TRANSACTION_INDEX_VERSION, mended_by=None,
    hint="left as it is: its log is bad, and does not show all that was aborted. A broker fails to load it: move it "
         "elsewhere; then consumers that read only committed records get aborted ones")
TRANSACTION_INDEX_ORDER = Kind("transaction-index-order", "error",
    "Entries are not in order.", _REPAIR, "index")
TRANSACTION_INDEX_RANGE = Kind("transaction-index-range", "error",
    "An entry's offset is negative, or it begins after it ends: no broker writes that.", _REPAIR, "index")
TRANSACTION_INDEX_OFFSET = Kind("transaction-index-offset", "error",
    "An entry's transaction ends before the segment begins; a broker recovers the segment.", _REPAIR, "index")
TRANSACTION_INDEX_MISSING = Kind("transaction-index-missing", "error",
    "Transactions were aborted, and the file is missing: consumers of committed records get aborted ones.",
    _ABORTED_READ, "index")
ABORTED_LOST_WITH_OFFSETS = replace(TRANSACTION_INDEX_MISSING,
    hint=f"the .index is missing too: brokers make both anew when they start, those {_LEFT}, do not, so that "
         f"{_ABORTED_READ}")
TRANSACTION_INDEX_INCOMPLETE = Kind("transaction-index-incomplete", "error",
    "Aborted transactions have no entry: consumers of committed records get aborted ones.",
    _ABORTED_READ, "index")
TRANSACTION_INDEX_UNKNOWN = Kind("transaction-index-unknown", "error",
    "An entry is for a transaction that the log does not show as aborted.",
    f"it hides records that were committed; {_REPAIR}", "index")
TRANSACTION_GONE = replace(TRANSACTION_INDEX_UNKNOWN, severity="warning",
    hint="nothing of it is in the log any more", mended_by=None)
TRANSACTION_RECORDS_GONE = replace(TRANSACTION_INDEX_UNKNOWN, severity="info",
    hint="retention or the cleaner removed its records, and left its marker", mended_by=None)
TRANSACTION_ELSEWHERE = replace(TRANSACTION_INDEX_UNKNOWN,
    hint=f"the log has something else where its abort marker must have been; {_REPAIR}")
TRANSACTION_INDEX_FIRST_OFFSET = Kind("transaction-index-first-offset", "error",
    "An entry begins elsewhere than its transaction in the log; where it begins later, consumers get the records "
    "before it though they were aborted.",
    _REPAIR, "index")
TRANSACTION_CLEANED = replace(TRANSACTION_INDEX_FIRST_OFFSET, severity="info",
    hint="retention or the cleaner removed the batches at its beginning: this entry is right", mended_by=None)
TRANSACTION_INDEX_LAST_STABLE_OFFSET = Kind("transaction-index-last-stable-offset", "error",
    "An entry says that no transaction was open where one was, and a search may end too early.",
    f"a search may end too early; {_REPAIR}", "index")
LAST_STABLE_OFFSET_OF_GONE = replace(TRANSACTION_INDEX_LAST_STABLE_OFFSET,
    hint="nothing of its transaction is in the log any more, and a search may end too early; "
         "`mqindex repair` writes the file from the log, without it")
LAST_STABLE_OFFSET_EARLIER = replace(TRANSACTION_INDEX_LAST_STABLE_OFFSET, severity="info",
    hint="retention or the cleaner removed the records of a transaction that was open; a search goes on for longer",
    mended_by=None)
LAST_STABLE_OFFSET_OF_FOLLOWER = replace(TRANSACTION_INDEX_LAST_STABLE_OFFSET, severity="info",
    hint="as a follower writes it, or a broker that does not know of what lies below the log's start", mended_by=None)

# ---- what is no file

INDEX_NOT_A_FILE = Kind("index-not-a-file", "error",
    "A directory, or something else that is no file, has the name of an index, and a broker fails when it opens it.",
    "a broker that opens it puts the log dir offline; `mqindex repair` moves it to the backup", "index",
    stops_start=True)
INDEX_LEADS_NOWHERE = replace(INDEX_NOT_A_FILE, severity="warning",
    hint="a broker takes it for no file, and puts the log dir offline where it cannot make one for an aborted "
         "transaction: remove the link, or bring back what it leads to", mended_by=None, stops_start=False)
SNAPSHOT_NOT_A_FILE = Kind("snapshot-not-a-file", "warning",
    "A directory, or something else that is no file, has the name of a snapshot of the producers' state.",
    "a broker ignores it, and fails where it writes a snapshot of this offset: move it elsewhere")

# ---- the files of a partition and of a log dir

DELETED_NOT_LOADED = Kind("deleted-not-loaded", "error",
    "A partition is being deleted, and a broker cannot load it, which it does first when it starts.",
    "move the partition's directory elsewhere: nothing in it is in use", stops_start=True)
LEADER_EPOCH_CHECKPOINT = Kind("leader-epoch-checkpoint", "error",
    "A partition's leader-epoch-checkpoint cannot be read: a broker puts the whole log dir offline, or does not start.",
    "a broker puts the whole log dir offline, or does not start; delete the file: a broker creates a new one",
    stops_start=True)
LEADER_EPOCHS_LOST = Kind("leader-epochs-lost", "warning",
    "A partition's leader-epoch-checkpoint is missing or empty, though its batches have leader epochs, and a broker "
    "that starts knows none of these.",
    "a broker does not read them in the log: as a follower it cuts the log to its high watermark, as a leader it "
    "cannot tell replicas where they diverged; restore the file")
STRAY_DIRECTORY = Kind("stray-directory", "error",
    "A directory of a log dir is not a partition, and no broker starts.",
    "move it elsewhere, or give the log dir a directory of its own below the volume's root", stops_start=True)
DUPLICATE_DIRECTORY = Kind("duplicate-directory", "error",
    "Two directories are of the same partition: a broker does not start, or stops when it exchanges the two.",
    "move one elsewhere: the older copy, or the one whose name has zeros before its number", stops_start=True)
STRAY_SEGMENT_FILE = Kind("stray-segment-file", "error",
    "A file has a segment's extension without an offset before it, and no broker starts.",
    "move it elsewhere", stops_start=True)
LOG_START_BEYOND_END = Kind("log-start-beyond-end", "error",
    "A log ends below its start offset: a broker that starts deletes every segment.",
    "a broker that starts deletes every segment: are all segments there, and is the checkpoint this log dir's?")
LOG_START_BEYOND_EPOCH = Kind("log-start-beyond-epoch", "warning",
    "A log starts, by log-start-offset-checkpoint, after its first leader epoch begins, though a broker moves both.",
    "a broker hides what is before the start and deletes its segments: is the checkpoint this log dir's, and right?")
RECORD_TIMES = Kind("record-times", "warning",
    "The times of records are as those of this century in another unit than the milliseconds that a broker takes them "
    "for.",
    "retention by time (retention.ms) {then}. Let the producers give milliseconds, or the broker the times "
    "(message.timestamp.type=LogAppendTime); until the log has only these, keep it by size: retention.ms=-1 with "
    "retention.bytes")
LOG_LOST = Kind("log-lost", "error",
    "A checkpoint of the log dir says that a log reached farther than its segments do: none is left, or after a clean "
    "stop the last are not there.",
    "a broker that starts goes on at offset {end}: as the leader it gives lost offsets again, and followers cut their "
    "logs; as a follower it copies the leader's. Restore the files, or let a replica that has them lead first")
NO_SEGMENT = Kind("no-segment", "warning",
    "A partition of a log dir has no segment, though a broker always leaves one, whatever it deletes: its records are "
    "gone. Only a broker that was killed while it made the partition leaves the directory so.",
    "a broker that starts makes an empty segment of offset {start}, and goes on there: as the leader it gives offsets "
    "again, and followers cut their logs; as a follower it copies the leader's. If the partition had records, restore "
    "the files, or let a replica that has them lead first")
META_PROPERTIES = Kind("meta-properties", "error",
    "The log dir's meta.properties cannot be read, and no broker starts.",
    "restore the file; every log dir of a broker has the same ids", stops_start=True)
PROPERTIES_INCOMPLETE = Kind("meta-properties-incomplete", "error",
    "The log dir's meta.properties lacks an id: brokers with ZooKeeper start and add it, those with KRaft, as every "
    f"one {_RAFT}, do not start.",
    "restore the file; every log dir of a broker has the same ids", stops_start=True)
PROPERTIES_OF_OLD = replace(PROPERTIES_INCOMPLETE, severity="warning",
    hint="brokers before 2.4 write no cluster.id: nothing is wrong with these. Add it before one with KRaft starts")
PROPERTIES_MISSING = Kind("meta-properties-missing", "error",
    f"The log dir has no meta.properties: a broker with KRaft, as every one {_RAFT}, does not start.",
    "restore the file: it is needed in every log dir of a broker; one with ZooKeeper writes it itself",
    stops_start=True)
PROPERTIES_WRITTEN_ANEW = replace(PROPERTIES_MISSING, severity="warning",
    hint="a broker with ZooKeeper writes it anew; where its configuration has no broker.id it gets a new one, and the "
         "partitions are not its own then", stops_start=False)
PROPERTIES_OF_A_COPY = replace(PROPERTIES_MISSING, severity="info",
    hint="it has no checkpoints either, and is taken for a copy of partitions: `would a broker start` is for them in a "
         "log dir that has its meta.properties", stops_start=False)
PARTITION_METADATA = Kind("partition-metadata", "error",
    "A partition.metadata cannot be read: a broker puts the whole log dir offline.",
    f"{_OFFLINE}; restore it from a replica, where the topic has the same id", stops_start=True)
TOPIC_ID = Kind("topic-id", "warning",
    "A partition has another topic id than the other partitions of its topic: a broker "
    f"{brokers.TOPIC_IDS.brokers} does not serve one with an id that the cluster does not know.",
    "compare it with `kafka-topics.sh --describe`: a deleted topic had the same name, or the file is damaged")
NOT_WRITABLE = Kind("not-writable", "error",
    "The owner of the newest segment has no permission to write a file or directory of the log dir, so a broker puts "
    "the log dir offline.",
    "a broker opens every file for writing: chown or chmod those that it cannot open, {count} in all", stops_start=True)
NOT_REBUILT = Kind("not-rebuilt", "error",
    "A log dir or partition among several was not rebuilt: nothing of it was published. The others were not held up.",
    "mend that, then rebuild it alone, to that place")
ELSEWHERE = Kind("files-elsewhere", "info",
    "The files are not on this machine: locks, owners, links and holes are not known there.",
    "no lock, owner, link or hole was looked at; copy the log dir here, or mount its place, to have them looked at too")
RESULT_CHANGED = Kind("result-changed", "error",
    "A file of a result in an object store has other bytes than its rebuild gave it.",
    "its checksum is not the one in mqindex.json; rebuild it, to another place")
OFFSET_CHECKPOINT = Kind("offset-checkpoint", "error",
    "A checkpoint of the log dir cannot be read: a broker puts the log dir offline, or goes on without what it says.",
    f"{_OFFLINE}; delete the file: a broker makes a new one, and {{consequence}}", stops_start=True)
OFFSET_CHECKPOINT_NUMBER = replace(OFFSET_CHECKPOINT,
    hint=f"a broker from {brokers.NUMBER_STOPS.until} on {{effect}}, an older one puts the log dir offline; delete the "
         "file: a broker makes a new one, and {consequence}")
PRODUCER_SNAPSHOT = Kind("producer-snapshot", "warning",
    "A snapshot of the producers' state cannot be read: a broker takes an older one, and the log from there on.",
    "a broker that starts deletes it, and knows no more of producers than an older one and the log show")
SNAPSHOT_NOT_OPEN = Kind("open-transactions", "error",
    "After a clean stop a broker would take other transactions for open than the log shows: consumers of committed "
    "records get records that are not committed, or none.",
    "a broker believes it: remove it and .kafka_cleanshutdown, so that a broker reads the log for what is open")
NO_SNAPSHOT_OF_OPEN = replace(SNAPSHOT_NOT_OPEN,
    hint="a broker takes nothing for open: remove .kafka_cleanshutdown, so that it reads the log for what is")
ORPHAN_INDEX = Kind("orphan-index", "warning",
    "An index has no log; a broker deletes it when it starts.",
    "if the segment had records, restore its log from another replica; else there is nothing to do")
LEFTOVER_FILE = Kind("leftover-file", "info",
    "A broker deletes the file when it starts: its segment was deleted or replaced.",
    "nothing to do")
INDEXES_UNKNOWN = Kind("indexes-unknown", "info",
    "The file does not have a segment's name, so no index next to it could be its own.",
    "give it its segment's name, 20 digits and .log, beside the indexes, to have these checked too")
LOG_MISSING = Kind("log-missing", "info",
    "An index was checked by itself: its log is not next to it.",
    "put the .log beside it to have the two compared")
PARTITION_GONE = Kind("partition-gone", "info",
    "A partition was deleted while it was read.",
    "a broker deleted it, or is about to: it was there a moment ago")
SEGMENT_SWAPPING = Kind("segment-swapping", "info",
    "A broker was exchanging the segment's files, and completes that when it starts.",
    "nothing to do: all files of the segment are there")
SEGMENTS_GONE = Kind("segments-gone", "info",
    "Segments were deleted while the partition was read; the others were checked.",
    "a broker deleted them meanwhile; the log begins at {start}")
NO_SEGMENT_LEFT = replace(SEGMENTS_GONE, hint="a broker deleted them meanwhile; nothing is left")

# ---- a repair that is taken back

WRITTEN_SINCE = Kind("written-since-repair", "warning",
    "A file was written to after the repair; what was written is not in the file that is back in its place.",
    "what was written is in the new backup only: `mqindex repair`, before a broker starts, writes it from the log")
LINKED_DIRECTORY = Kind("linked-directory", "warning",
    "The directory of a partition is a link. A broker follows it, a repair of the log dir does not.",
    "no repair begins: move the files into a directory of this name, mount their volume there, or repair the partition "
    "by its own path")

CATALOGUE: Final = Kind.by_name(globals())
"""Kind -> what is said of it: of each name the usual severity and hint first, then those of other situations."""
