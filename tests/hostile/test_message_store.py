"""Stores that no broker left behind: an answer, or an error of this package, whatever the bytes are."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.errors import FormatError, MQIndexError
from mqindex.rocketmq import MessageStore, NewMessage, verify
from tests.conftest import SeededRandom
from tests.support.queued_store import make_queued_store, tagged, write_units

CONFIG = {"maxHashSlotNum": 50, "maxIndexNum": 200, "mappedFileSizeCommitLog": 4096, "mappedFileSizeConsumeQueue": 1000}


def complete(root: Path, count: int = 120) -> Path:
    """A store with everything in it."""
    make_queued_store(root, tagged(count))
    shutil.rmtree(root / "consumequeue")
    with MessageStore.open(root, config=CONFIG, writable=True) as opened:
        opened.put_messages([NewMessage("Other", b"x", queue_id=n % 2, keys=f"o{n}") for n in range(30)])
    (root / "config").mkdir()
    (root / "config/consumerOffset.json").write_text('{"offsetTable":{"Topic@g":{0:7}}}')
    (root / "config/topics.json").write_text('{"topicConfigTable":{"Topic":{"perm":6}}}')
    return root


def ask_everything(root: Path) -> int:
    """Every kind of reading; how many were answered. What is raised is an error of the package."""
    answered = 0
    with MessageStore.open(root) as opened:
        calls: list[Callable[[], object]] = [
            lambda: opened.get_message("Topic", 0, 3, tags="TagA"),
            lambda: opened.get_message("Topic", 0, 2**62),
            lambda: opened.get_messages("Topic", 0, 0, max_msg_nums=500, columns=["body", "keys"]),
            lambda: opened.get_messages("Other", 1, 0, max_msg_nums=500, tags="TagB"),
            lambda: opened.query_message("Topic", "k7"),
            lambda: opened.query_message("Other", "o7", exact=True),
            lambda: opened.look_message_by_offset(0),
            lambda: opened.view_message("7F00000100002A9F0000000000000000"),
            lambda: opened.consumer_offsets.lag,
            lambda: (opened.topics, opened.delay_offsets, opened.checkpoint, opened.queues),
        ]
        for call in calls:
            try:
                call()
                answered += 1
            except MQIndexError as error:
                assert str(error)
    return answered


def test_any_byte_of_any_file_may_be_any_other(rng: SeededRandom, tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    assert ask_everything(root) == 10
    for _ in range(150):
        path = rng.choice(paths)
        before = path.read_bytes()
        path.write_bytes(damaged(rng, before))
        try:
            ask_everything(root)
        except MQIndexError as error:  # the store does not open
            assert str(error)
        path.write_bytes(before)
    assert ask_everything(root) == 10


def damaged(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    kind = rng.randrange(4)
    if kind == 0:
        return bytes(changed[: rng.randrange(len(changed) + 1)])
    if kind == 1:
        return rng.randbytes(len(changed))
    for _ in range(rng.choice([1, 4, 64])):
        if changed:
            at = rng.randrange(len(changed))
            changed[at : at + 8] = rng.choice([rng.randbytes(8), b"\xff" * 8, b"\x7f" + b"\xff" * 7, bytes(8)])[
                : len(changed) - at
            ]
    return bytes(changed)


@pytest.mark.parametrize("checkpoint", [b"", b"\xff" * 4096, b"x" * 17, b"\x7f" * 47, b"\x7f" * 48])
def test_a_checkpoint_of_garbage_is_only_numbers(checkpoint: bytes, tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    (root / "checkpoint").write_bytes(checkpoint)
    with MessageStore.open(root) as opened:
        assert (opened.checkpoint is None) == (len(checkpoint) < 48)
    with MessageStore.open(root, config=CONFIG, writable=True) as opened:
        opened.put_message(NewMessage("T", store_timestamp=5))
    with MessageStore.open(root) as opened:
        assert opened.checkpoint is not None
        assert opened.checkpoint[:3] == (5, 5, 0)  # no garbage is carried on


def test_invalid_json_hurts_only_who_asks_for_it(tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    (root / "config/consumerOffset.json").write_text('{"offsetTable":{"Topic@g":{0:')
    with MessageStore.open(root) as opened:
        with pytest.raises(FormatError, match=r"no JSON: .*consumerOffset\.json.*; restore the file"):
            _ = opened.consumer_offsets
        assert opened.topics["Topic"].perm == 6
        assert opened.get_message("Topic", 0, 0).status == "FOUND"


@pytest.mark.parametrize(
    "part", ["config", "checkpoint", "consumequeue", "index", "consumequeue/Topic", "consumequeue/Topic/0"]
)
def test_any_part_may_be_missing(part: str, tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    (shutil.rmtree if (root / part).is_dir() else os.unlink)(root / part)
    assert ask_everything(root) == 10


@pytest.mark.parametrize("part", ["config", "checkpoint", "consumequeue", "index", "commitlog"])
def test_any_part_may_be_of_another_kind(part: str, tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    if (root / part).is_dir():
        shutil.rmtree(root / part)
        (root / part).write_bytes(b"a file")
    else:
        (root / part).unlink()
        (root / part).mkdir()
    try:
        ask_everything(root)
    except (MQIndexError, OSError) as error:
        assert part in str(error)


def test_strangers_among_the_queues_are_passed_over(tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    for path in ("consumequeue/file", "consumequeue/Topic/x", "consumequeue/Topic/-1", "consumequeue/Topic/007"):
        (root / path).write_bytes(b"x" * 100)
    for path in ("consumequeue/Topic/0/stranger", "consumequeue/Topic/0/0000000000000000100x", "commitlog/readme"):
        (root / path).write_bytes(b"x" * 1000)
    (root / "consumequeue/Empty/0").mkdir(parents=True)
    with MessageStore.open(root) as opened:
        assert opened.queues == [("Empty", 0), ("Other", 0), ("Other", 1), ("Topic", 0)]
        assert opened.get_message("Empty", 0, 0).status == "NO_MESSAGE_IN_QUEUE"
        assert opened.get_messages("Topic", 0, 0, max_msg_nums=500).messages.num_rows == 120


@pytest.mark.parametrize(
    "unit", [(-5, 10, 0), (0, 0, 0), (2**63 - 1, 2**31 - 1, 0), (2**63 - 1, 1, -1), (0, 2**31 - 1, 0)]
)
def test_a_unit_may_point_anywhere(unit: tuple[int, int, int], tmp_path: Path) -> None:
    root = make_queued_store(tmp_path, tagged(20))
    write_units(root, "Topic", 0, [unit] * 3, first=20)
    with MessageStore.open(root) as opened:
        answer = opened.get_message("Topic", 0, 20)
        bulk = opened.get_messages("Topic", 0, 20, max_msg_nums=5)
        assert answer.messages == []
        assert bulk.messages.num_rows == 0
        wanted = "OFFSET_OVERFLOW_ONE" if unit[0] < 0 or unit[1] == 0 else "MESSAGE_WAS_REMOVING"
        assert (answer.status, bulk.status) == (wanted, wanted)


def test_a_queue_longer_than_its_log_is_cut_when_the_store_is_written(tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    write_units(root, "Topic", 0, [(10**6 + n * 100, 100, 0) for n in range(40)], first=120)
    with MessageStore.open(root, config=CONFIG, writable=True) as opened:
        assert opened.put_message(NewMessage("Topic")).queue_offset == 120
    assert verify(root, config=CONFIG, deep=True).ok


def test_a_log_cut_below_its_queues_and_index_is_mended_when_the_store_is_written(tmp_path: Path) -> None:
    root = complete(tmp_path / "store")
    for path in sorted((root / "commitlog").iterdir())[2:]:
        path.unlink()
    with MessageStore.open(root, config=CONFIG, writable=True) as opened:
        result = opened.put_message(NewMessage("Topic", keys="new"))
        assert 0 < result.queue_offset < 120
        assert opened.get_message("Topic", 0, result.queue_offset).messages[0].keys == "new"
        assert opened.query_message("Topic", "new", exact=True).messages[0].phy_offset == result.phy_offset
    assert verify(root, config=CONFIG, deep=True).ok


def test_a_log_without_files_is_a_store_without_messages(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert ask_everything(tmp_path) == 10
    write_units(tmp_path, "Topic", 0, [(0, 100, 0)] * 5)
    assert ask_everything(tmp_path) == 10
