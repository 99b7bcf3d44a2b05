"""What `rebuild` writes, `verify` finds right: whatever queue offsets a log holds, and however it is cut."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.report import Finding
from mqindex.rocketmq import rebuild, verify
from mqindex.rocketmq.checks.queues.queue_diagnosis import QueueDiagnosis, diagnose_queues
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import survey
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

ONE = LocalEngine(1)
CONFIG = {"mappedFileSizeConsumeQueue": 100, "maxHashSlotNum": 7, "maxIndexNum": 40}


def messages(rng: random.Random, count: int) -> list[LogMessage]:
    """Queue offsets that mostly go up by one; now and then a hole, a jump, a step back, a new beginning."""
    following = dict.fromkeys(("A", "B"), 0)
    made = []
    for number in range(count):
        topic = rng.choice("AB")
        step = rng.choices(["one", "hole", "jump", "back", "again", "below"], [60, 3, 1, 3, 1, 1])[0]
        place = following[topic]
        offset = {
            "one": place, "hole": place + rng.randint(1, 30), "jump": place + rng.randint(2000, 1 << 40),
            "back": max(place - rng.randint(1, 30), 0), "again": 0, "below": -rng.randint(1, 9),
        }[step]  # fmt: skip
        following[topic] = max(offset, 0) + 1
        made.append(
            LogMessage(
                topic,
                keys=f"k{number}" if rng.random() < 0.7 else None,
                tags=rng.choice([None, "T"]),
                body=bytes(rng.randrange(60)),
                queue_offset=offset,
                store_timestamp=FIRST_TIME + number * 300,
            )
        )
    return made


def store_of(root: Path, rng: random.Random, count: int) -> Path:
    LogWriter(root / "commitlog", mapped_file_size=4096).write(*messages(rng, count))
    rebuild(root, root / "out", config=CONFIG, engine=ONE)
    for part in ("index", "consumequeue"):
        if (root / "out" / part).exists():
            (root / "out" / part).rename(root / part)
    return root


def looked(root: Path, split_size: int) -> QueueDiagnosis:
    return diagnose_queues(ONE, survey(store_options(root, config=CONFIG)), deep=True, split_size=split_size)


def odd(seen: QueueDiagnosis) -> list[Finding]:
    return [
        one for one in seen.findings if not one.kind.startswith("queue-offset-") and one.kind != "queue-began-again"
    ]


@pytest.mark.parametrize("number", range(40))
def test_queues_of_any_offsets_are_right_when_rebuilt(number: int, tmp_path: Path, rng: random.Random) -> None:
    root = store_of(tmp_path, rng, rng.choice([3, 40, 200]))
    for split_size in (1 << 27, 4096, 700):
        seen = looked(root, split_size)
        assert odd(seen) == []
        assert seen.bad == seen.missing == ()
    report = verify(root, deep=True, config=CONFIG, engine=ONE)
    assert report.ok


@pytest.mark.parametrize("number", range(20))
def test_any_unit_that_is_changed_is_found(number: int, tmp_path: Path, rng: random.Random) -> None:
    root = store_of(tmp_path, rng, 120)
    before = {str(one) for one in looked(root, 4096).findings}
    path = rng.choice([path for path in (root / "consumequeue").rglob("*") if path.is_file()])
    data = bytearray(path.read_bytes())
    place = rng.choice([at for at in range(0, len(data), 20) if data[at : at + 20] != bytes(20)])
    at = place + rng.randrange(20)
    data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    after = {str(one) for one in looked(root, rng.choice([700, 4096])).findings}
    assert after != before
