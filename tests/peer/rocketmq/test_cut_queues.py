"""Queues of which a broker cuts the end when it starts: behind a hole in the log, behind damage of its newest file with
whole messages after it, and with blanks that are last.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.rocketmq import ConsumeQueue, repair, verify
from mqindex.rocketmq.queue.queue_units import BLANK
from tests.peer.thresholds.ask import answer
from tests.peer.thresholds.questions import Question
from tests.support.nightly import some
from tests.support.rocketmq_damage import DAMAGE

CONFIG = {"mappedFileSizeConsumeQueue": 1000, "maxHashSlotNum": 100, "maxIndexNum": 400}
UNIT = len(BLANK)
HOLE = 40_000


def hole(store: Path) -> None:
    """The end of the first log file did not reach the disk, nor what the queues have from there on."""
    first = store / "commitlog" / f"{0:020d}"
    first.write_bytes(first.read_bytes()[:HOLE].ljust(first.stat().st_size, b"\0"))
    for file in store.glob("consumequeue/*/*/*"):
        data = file.read_bytes()
        units = (data[at : at + UNIT] for at in range(0, len(data), UNIT))
        file.write_bytes(
            b"".join(one for one in units if int.from_bytes(one[:8], "big") < HOLE).ljust(len(data), b"\0")
        )
    (store / "abort").touch()


def blank_end(store: Path) -> None:
    """As an earlier version left a queue behind a hole."""
    with ConsumeQueue.open(store / "consumequeue/AaTopic/0") as queue:
        end, file = queue.max_offset_in_queue * UNIT, queue.files[-1]
    path = Path(file.path)
    data = path.read_bytes()
    path.write_bytes((data[: end - file.start] + 2 * BLANK).ljust(len(data), b"\0"))


def next_message(release: str, home: Path, harm: Callable[[Path], None], *, repaired: bool) -> tuple[int, int]:
    """The offset that a queue's next message gets after a start on a harmed store, and where the queue ends then."""

    def harmed(store: Path) -> None:
        harm(store)
        if repaired:
            repair(store, config=CONFIG, broker_version=release)

    question = Question("", "", (release,), ("put:AaTopic:10", "stop"), r"load |put |queue AaTopic ", harmed)
    said = answer(question, release, home)
    found = re.fullmatch(r"load true, put PUT_OK offset (\d+), queue AaTopic 0 \d+ (\d+)", said)
    assert found, said
    return int(found[1]), int(found[2])


DAMAGES = ("log: newest body", "log: newest body, killed")


@pytest.mark.parametrize(
    ("release", "damage"),
    some(itertools.product(["4.9.3", "5.1.4", "5.3.3", "5.5.1"], DAMAGES), lambda *each: each == ("5.5.1", DAMAGES[0])),
)
def test_whole_messages_behind_damage_of_the_newest_file_are_given_up(
    release: str, damage: str, tmp_path: Path, say_proven: Callable[[str], None]
) -> None:
    """`log-cut-at-next-start`: the log ends at the bad record, and each queue before the first message behind it."""
    expected = ["load true", "log 0 85624"]

    def harmed(store: Path) -> None:
        DAMAGE[damage](store)
        (told,) = (one for one in verify(store, broker_version=release).findings if one.kind == "log-cut-at-next-start")
        assert (told.got, "deletes 190 messages" in str(told.hint)) == ("a bad one at phy offset 85624", True)
        for queue in sorted(store.glob("consumequeue/*/0")):
            with ConsumeQueue.open(queue) as opened:
                phy_offsets = opened.units()["phy_offset"]
            expected.append(f"queue {queue.parent.name} 0 0 {(phy_offsets < 85624).sum()}")

    question = Question("", "", (release,), ("stop",), "load |log |queue ", harmed)
    assert answer(question, release, tmp_path).split(", ") == expected
    say_proven(f"RocketMQ {release}: {damage}: its log and queues end where verify says")


@pytest.mark.parametrize("release", some(["4.9.3", "5.5.1"], lambda release: release == "5.5.1"))
def test_a_repair_before_the_log_is_cut_keeps_no_message_from_a_queue(release: str, tmp_path: Path) -> None:
    offset, end = next_message(release, tmp_path, hole, repaired=True)
    assert end == offset + 1


@pytest.mark.parametrize("release", some(["4.9.3", "5.5.1"], lambda release: release == "4.9.3"))
def test_a_queue_that_ends_in_blanks_gets_no_message_until_it_is_repaired(release: str, tmp_path: Path) -> None:
    (tmp_path / "repaired").mkdir()
    offset, end = next_message(release, tmp_path, blank_end, repaired=False)
    assert end == offset
    assert next_message(release, tmp_path / "repaired", blank_end, repaired=True) == (offset - 2, offset - 1)
