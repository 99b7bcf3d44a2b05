"""What a repair says of damage, compared with what is found before and after it, of both brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from mqindex.errors import MQIndexError
from mqindex.report import RepairReport, Report
from tests.support.tree import contents

__all__ = ["check_repair", "check_start", "errors"]


def errors(report: Report) -> set[tuple[str, str | None]]:
    """Kind and path of each error."""
    return {(one.kind, one.path) for one in report.findings if one.severity == "error"}


def check_start(found: Report) -> None:
    """Whatever prevents a start, a finding of the same file says, of a kind that stops one."""
    assert found.start is not None
    stopping = {one.path for one in found.findings if one.stops_start}
    assert [one for one in found.start.obstacles if one.path not in stopping and one.reason not in _TOLD_ELSE] == []


_TOLD_ELSE: Final = (
    "a RocksDB database, which mqindex does not read",  # nothing is found to be wrong with it
    "its first place holds no unit",  # where units are missing there, that is said of the queue
)


_REFUSED: Final = {
    "broker-version-unknown": "nothing shows the broker's version",
    "delay-level-unknown": "nothing shows the delay of delay level",
    "geometry-unknown": "nothing shows the geometry of the index files",
    "linked-directory": "a directory is a link",
    "lock-unreadable": "Is a directory",
    "log-cut-at-next-start": "would take messages out of queues and index that are whole in the log",
    "log-missing": "the commit log is missing",
    "not-a-directory": "not a directory",
    "offsets-served-twice": "would take messages out of a queue that consumers get now",
    "queue-file-size-unknown": "nothing shows the length of the queues' files",
}
"""By the kind of a finding what a repair says that refuses because of it; whatever else it raises is a defect."""


def check_repair(
    path: Path, verify: Callable[[Path], Report], repair: Callable[[Path], RepairReport], *, whole: bool = True
) -> None:
    """One repair says what is left, and leaves nothing to a second one; and where it is asked to mend all of it, it
    mends what the kinds of findings say.
    """
    before, there = verify(path), contents(path)
    check_start(before)
    try:
        said = repair(path)
    except (MQIndexError, OSError) as refused:
        assert contents(path) == there, refused
        reasons = [words for kind, words in _REFUSED.items() if kind in {one.kind for one in before.findings}]
        assert any(words in str(refused) for words in reasons), f"nothing was found for this refusal: {refused!r}"
        return
    found = verify(path)
    check_start(found)
    assert errors(said) == errors(found)
    assert said.ok is found.ok
    if whole:
        after = contents(path)
        _check_mended(before, found, {str(path / name) for name in there if after.get(name) != there[name]})
    assert repair(path).actions == [], "one repair does it"


def _check_mended(before: Report, found: Report, changed: set[str]) -> None:
    """What a part of the repair mends is gone; else an error stays, though perhaps as another kind at the same byte,
    where its file was not changed for another reason.
    """
    left = {(one.path, one.kind) for one in found.findings}
    places = {(one.path, one.at) for one in found.findings if one.at is not None}
    for one in before.findings:
        if one.mended_by is not None:
            assert (one.path, one.kind) not in left, one
        elif one.severity == "error":
            assert (one.path, one.kind) in left or (one.path, one.at) in places or one.path in changed, one
