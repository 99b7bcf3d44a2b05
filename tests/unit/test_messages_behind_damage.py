"""Damage of the newest log file with whole messages behind it: a start gives these up, a repair only when asked.

Brokers 4.9.3, 5.1.4, 5.3.3 and 5.5.1 cut this log at the bad record, after a clean stop and after a kill.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.errors import FileStateError
from mqindex.report import Report
from mqindex.rocketmq import repair, undo_repair, verify
from tests.support.golden import case
from tests.support.rocketmq_damage import DAMAGE
from tests.support.tree import contents

CUT, BEHIND = "log-cut-at-next-start", "frames-behind-log-end"
PLACE, MESSAGES = 20_088, 190  # of the bad record in its file, and behind it


@pytest.fixture(params=["log: newest body", "log: newest body, killed"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root: Path = case("basic-493").unpack(tmp_path)
    DAMAGE[request.param](root)
    return root


def cuts(report: Report) -> list[tuple[str, int | None]]:
    return [(Path(str(one.path)).name, one.at) for one in report.findings if one.kind == CUT]


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("version", ["4.9.3", "5.1.4", "5.3.3", "5.5.1", None])
def test_verify_says_what_the_next_start_gives_up(store: Path, version: str | None, deep: bool) -> None:
    """It was "delete nothing"."""
    report = verify(store, broker_version=version, deep=deep)
    assert cuts(report) == [(f"{65536:020d}", PLACE)]
    assert report.start is not None
    assert ([Path(path).name for path in report.start.cuts], report.start.messages_deleted) == (
        [f"{65536:020d}"],
        MESSAGES,
    )


def test_what_a_repair_asks_about_says_so(store: Path) -> None:
    """The hints of units and entries said that a repair mends them."""
    for report in (verify(store), repair(store, dry_run=True)):
        hints = {one.kind: str(one.hint) for one in report.findings if one.kind.endswith("beyond-log")}
        assert set(hints) == {"queue-beyond-log", "index-beyond-log"}
        assert [kind for kind, hint in hints.items() if "only with --cut-damaged (cut_damaged=True)" not in hint] == []


def test_a_repair_takes_them_out_of_queues_and_index_only_when_that_is_asked_for(store: Path) -> None:
    """It did so without a word."""
    before = contents(store)
    assert cuts(repair(store, broker_version="5.3.3", dry_run=True))
    with pytest.raises(FileStateError, match=f"and {MESSAGES} whole messages behind it that queues have;.*cut_damaged"):
        repair(store, broker_version="5.3.3")
    assert contents(store) == before
    done = repair(store, broker_version="5.3.3", cut_damaged=True)
    assert done.ok
    after = verify(store, broker_version="5.3.3")
    assert after.start is not None
    assert (after.ok, after.start.cuts, after.start.messages_deleted) == (True, (), 0)
    assert BEHIND in [one.kind for one in after.findings], "they are still in the log"
    assert done.backup is not None
    undo_repair(store, done.backup)
    assert {name: what for name, what in contents(store).items() if not name.startswith("mqindex-backup")} == before


def test_what_no_queue_has_was_given_up_before(store: Path) -> None:
    """As a broker leaves it that has cut its log: new messages go over the old ones."""
    repair(store, broker_version="5.3.3", cut_damaged=True)
    assert repair(store, broker_version="5.3.3").ok
