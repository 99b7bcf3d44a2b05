"""Every kind of finding that verify, rebuild and repair make of Kafka's partitions, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mqindex.report import Kind, Severity

_INDEX = "`mqindex repair` writes the index from the log"
_RESTORE = "restore the segment from another replica"
_ALONE = "nothing need be done"


def _kinds(severity: Severity, hint: str | None, meanings: Mapping[str, str]) -> dict[str, tuple[Kind]]:
    return {name: (Kind(name, severity, meaning, hint),) for name, meaning in meanings.items()}


CATALOGUE: Final[Mapping[str, tuple[Kind, ...]]] = MappingProxyType(
    {
        # ---- the log of a segment
        **_kinds(
            "error",
            _RESTORE,
            {
                "log-bad-crc": "A batch's checksum is wrong: a broker's recovery cuts the log there, and drops "
                "all later segments; at the log's very end it is what a crash leaves, and a warning.",
                "log-bad-length": "A batch's length cannot be: a broker's recovery cuts the log there, and drops "
                "all later segments; at the log's very end it is what a crash leaves, and a warning.",
                "log-count": "A batch says that it has more records than offsets, or less than none; its "
                "consumers fail.",
                "log-leader-epoch": "The leader epoch of batches goes back, or is not the one that the "
                "partition's leader-epoch-checkpoint has for their offsets: replicas that diverged are cut at "
                "the wrong place.",
                "log-magic": "A batch has a format that no broker knows; no checksum covers it, and consumers "
                "fail there.",
                "log-not-a-file": "A directory, or a link that leads nowhere, has the name of a segment's log, and a "
                "broker passes over it: the segment's records are not there.",
                "log-offset-order": "A batch's offsets are not behind those of the batch before, or below the "
                "segment's base offset, or not what a broker's snapshot of the log's end says; no checksum "
                "covers a base offset.",
                "log-records": "A batch's checksum is right, but its records cannot be read to the last one.",
                "log-refused": "A broker's recovery does not survive this log: it empties the segment, or does "
                "not start.",
                "segment-overlap": "A segment has offsets that belong to the one behind it.",
            },
        ),
        **_kinds(
            "warning",
            _RESTORE,
            {
                "log-end": "The log ends before an offset that a broker's snapshot says it had reached: records "
                "are lost.",
                "log-max-timestamp": "Records of a batch are later than it says; searches by time pass over them.",
                "log-tail": "Behind the last whole batch stands a part of one, or zeros; a broker's recovery cuts "
                "them. In the middle of a partition an error, zeros at its end an info.",
            },
        ),
        # ---- the offset index
        **_kinds(
            "error",
            _INDEX,
            {
                "offset-index-beyond-log": "An entry leads behind the log's end; in an index that is open, what a "
                "truncation left, and a warning.",
                "offset-index-length": "The file's length is no multiple of an entry's, or more than any broker reads.",
                "offset-index-missing": "The file is missing; brokers from 2.3 on recover the segment when they start.",
                "offset-index-offset": "An entry leads behind batches that its offset belongs to: look-ups miss them.",
                "offset-index-order": "Entries that do not follow the ones before stand behind them.",
                "offset-index-position": "An entry leads into the middle of a batch.",
                "offset-index-unwritten": "Zeros stand behind the entries of a closed index, and a broker takes "
                "them for entries; of an index that is open an info.",
            },
        ),
        **_kinds(
            "warning",
            _ALONE,
            {"offset-index-origin": "An entry's offset is none of the batches that it leads to; look-ups are right."},
        ),
        **_kinds(
            "warning",
            _INDEX,
            {
                "offset-index-empty": "There is no entry where some are due: every look-up reads the log from its "
                "begin, and is right. A follower that got the segment in one append leaves it so.",
            },
        ),
        # ---- the time index
        **_kinds(
            "error",
            _INDEX,
            {
                "time-index-beyond-log": "An entry is later than every record, or for an offset behind the log's "
                "end; in an index that is open, what a truncation left, and a warning.",
                "time-index-empty": "There is no entry, though records have times: searches by time begin in the "
                "wrong segment, and retention goes by the file's time.",
                "time-index-incomplete": "The last entry is not the segment's greatest time, by which searches "
                "choose a segment and retention deletes.",
                "time-index-length": "The file's length is no multiple of an entry's, or more than any broker reads.",
                "time-index-missing": "The file is missing; a broker makes an empty one, and never writes its entries.",
                "time-index-offset": "An entry leads searches by time behind records that they look for.",
                "time-index-order": "Entries that do not follow the ones before stand behind them.",
                "time-index-unwritten": "Zeros stand behind the entries of a closed index, and a broker takes "
                "them for entries, so that retention may delete the segment; of an index that is open an info.",
            },
        ),
        **_kinds(
            "warning",
            _ALONE,
            {"time-index-origin": "An entry is not for the first batch with its time; searches are right."},
        ),
        # ---- the transaction index
        **_kinds(
            "error",
            _INDEX,
            {
                "transaction-index-first-offset": "An entry begins behind its transaction, whose first records "
                "consumers get though they were aborted; where the cleaner took them away an info.",
                "transaction-index-incomplete": "Aborted transactions have no entry: consumers of committed "
                "records get aborted ones.",
                "transaction-index-last-stable-offset": "An entry says that no transaction was open where one "
                "was, and a search may end too early.",
                "transaction-index-length": "The file's length is no multiple of an entry's.",
                "transaction-index-missing": "Transactions were aborted, and the file is missing: consumers of "
                "committed records get aborted ones.",
                "transaction-index-offset": "An entry's transaction ends before the segment begins; a broker "
                "recovers the segment.",
                "transaction-index-order": "Entries do not follow the ones before.",
                "transaction-index-unknown": "An entry is for a transaction that the log does not show aborted: "
                "records that were committed are hidden. A warning where none is left.",
                "transaction-index-version": "An entry has a version that no broker writes, and a broker fails to "
                "load it.",
            },
        ),
        # ---- the files of a partition
        **_kinds(
            "error",
            "delete the file: a broker makes a new one, from what it recovers or appends",
            {
                "leader-epoch-checkpoint": "A partition's leader-epoch-checkpoint cannot be read: a broker puts "
                "the whole log dir offline, or does not start.",
            },
        ),
        **_kinds(
            "error",
            "move it elsewhere",
            {
                "stray-directory": "A directory of a log dir is no partition, and no broker starts.",
                "stray-segment-file": "A file has a segment's ending and no offset before it, and no broker starts.",
            },
        ),
        **_kinds(
            "error",
            "restore the file",
            {
                "log-start-beyond-end": "A log ends below the offset at which it is said to start: a broker that "
                "starts deletes every segment.",
                "meta-properties": "The log dir's meta.properties cannot be read, and no broker starts.",
                "partition-metadata": "A partition.metadata cannot be read: a broker puts the whole log dir offline.",
            },
        ),
        **_kinds(
            "error",
            "chown or chmod the files for the user that the broker runs as",
            {
                "not-writable": "The owner of the newest segment may not write a file or directory of the log dir, so "
                "a broker puts the log dir offline.",
            },
        ),
        **_kinds(
            "warning",
            "delete the file",
            {"offset-checkpoint": "A checkpoint of the log dir cannot be read, and a broker passes over it."},
        ),
        **_kinds("warning", _ALONE, {"orphan-index": "An index has no log; a broker deletes it when it starts."}),
        **_kinds(
            "info",
            None,
            {
                "index-unlike-rebuilt": "Indexes answer rightly, and a rebuild would write others: followers, the "
                "cleaner, older versions and other settings do.",
                "indexes-unknown": "The file has no segment's name, so that no index beside it could be its own.",
                "leftover-file": "A broker deletes the file when it starts.",
                "log-missing": "An index was checked by itself: its log does not stand beside it.",
                "partition-gone": "A partition was deleted while it was looked at.",
                "segment-swapping": "A broker was exchanging the segment's files, and ends that when it starts.",
                "segments-gone": "Segments were deleted while the partition was read; the others were checked.",
            },
        ),
    }
)
