"""What a broker's next start would do, in words."""

from __future__ import annotations

from mqindex._words import plural
from mqindex.report import Start
from mqindex.wording.findings import shortened

LOCKS = {
    "held": "held: a broker runs on this {}",
    "free": "free: no broker runs on this {}",
    "absent": "not there",
    "unreadable": "there, but not for us to read",
    "elsewhere": "not known: the files are not on this machine",
}
"""What the state of a lock means for a store or a log dir."""

ABORT = {True: "there: the last exit was unclean, or the broker runs", False: "not there"}
CLEAN_SHUTDOWN = {True: "yes", False: "no: the last exit was unclean, or the broker runs"}

STATES = {
    "delete": "being deleted",
    "future": "to take the place of the one in another log dir",
    "stray": "stray: the cluster does not know it here",
}
"""What the directory of a Kafka partition is that is not in use."""

DELETED = "deleted: its broker removes it soon, or when it starts; until then it can be read"
"""What a file of a segment is whose name ends in `.deleted`."""

BEFORE_SEGMENTS = "offsets {} to {} are in tiered storage, which is not read, or were deleted since the checkpoint"
"""What it means that the checkpoint has a log start before the first segment."""


def verdict(start: Start, root: str) -> list[tuple[str, str]]:
    """Question and answer: would a broker start, what would its start change, who holds the lock."""
    return [
        ("would a broker start", _starts(start, root)),
        ("its start would", _changes(start, root)),
        ("lock", _lock(start)),
    ]


def _starts(start: Start, root: str) -> str:
    if start.starts:
        return "yes"
    first, *others = start.obstacles
    reason = f"{shortened(first.path, root)}: {first.reason}"
    if first.brokers != "every":
        asked = f"; {first.option} tells" if first.option else ""
        reason = f"{reason} ({first.brokers}{asked})"
    more = f", and {plural(len(others), 'more', 'more')}" if others else ""
    return f"{'no' if start.starts is False else 'not known'}: {reason}{more}"


def _changes(start: Start, root: str) -> str:
    parts = []
    if start.deletes:
        gone = f"delete {_some(start.deletes, root)}"
        if start.entries_deleted:
            gone += f" with {plural(start.entries_deleted, 'index entry')}, {_lost(start)}"
        parts.append(gone)
    if start.recovers:
        parts.append(f"make the indexes of {plural(start.recovers, 'segment')} anew")
    if start.cuts:
        parts.append(_cut(start, root))
    unread = "" if start.messages_deleted is not None else ", unless its log is damaged"
    return "; ".join(parts) or f"delete nothing{unread}"


def _cut(start: Start, root: str) -> str:
    cut = f"cut {_some(start.cuts, root)}"
    if start.messages_deleted is None:
        return f"perhaps {cut}, and delete what follows"
    return f"{cut} and delete {plural(start.messages_deleted, 'message')}" if start.messages_deleted else cut


def _lost(start: Start) -> str:
    if start.entries_lost is None:
        return "of which an unknown number would come back"
    if start.entries_lost == 0:
        return "and write them again"
    return f"of which {start.entries_lost} would not come back"


def _some(paths: tuple[str, ...], root: str) -> str:
    first = shortened(paths[0], root)
    return first if len(paths) == 1 else f"{first} and {plural(len(paths) - 1, 'more', 'more')}"


def _lock(start: Start) -> str:
    if start.lock == "held":
        who = start.lock_holder or "a process"
        return f"held by {who}" + ("" if start.lock_pid is None else f" (process {start.lock_pid})")
    if start.lock == "unreadable":
        return "its file cannot be read, so it is not known whether a broker runs"
    return {"free": "free: no broker runs", "elsewhere": LOCKS["elsewhere"]}.get(start.lock, "there is none")
