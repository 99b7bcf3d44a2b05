"""What a directory or a file of RocketMQ's is: one module says it, for the commands and for the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.cli.rocketmq import kinds as words
from mqindex.errors import FileStateError
from mqindex.rocketmq import kinds, verify
from mqindex.rocketmq.kinds import kind_of_directory, kind_of_file, queue_place
from tests.support.small_store import OPTIONS, QUEUE_FILE_SIZE, make_small_store

ZERO = "0" * 20
ARABIC = "\u0660" * 20


def test_each_kind_has_words(tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    seen = {kind_of_directory(str(root))}
    for home in ("consumequeue", "consumequeue_ext", "batchconsumequeue"):
        (root / home / "T" / "9").mkdir(parents=True)
        (root / home / "T" / "9" / ZERO).touch()
    for name in ("topics.json", "consumerOffset.json.bak", "subscriptionGroup.json"):
        (root / "config").mkdir(exist_ok=True)
        (root / "config" / name).touch()
    (root / "checkpoint").write_bytes(bytes(4096))
    for path in root.rglob("*"):
        seen.add(kind_of_directory(str(path)) if path.is_dir() else kind_of_file(str(path)))
    assert seen - {None} == {*words.KINDS}


def test_names() -> None:
    assert [kinds.offset_of(name) for name in (ZERO, ARABIC, "9" * 20, "0" * 21, "7")] == [0, 0, None, None, None]
    assert kinds.offset_of(kinds.name_at(2**63 - 1)) == 2**63 - 1
    assert [kinds.is_index_name(name) for name in ("20231114221320000", "2" * 16, ZERO)] == [True, False, False]
    assert [kinds.queue_id_of(name) for name in ("0", "07", "-1", "\u0667", str(2**31), "T")] == [0, *[None] * 5]


def test_the_place_in_a_directory_of_queues(tmp_path: Path) -> None:
    home = tmp_path / "consumequeue"
    (home / "consumequeue" / "3").mkdir(parents=True)  # a topic may be called so
    assert queue_place(str(home)) == (str(home), None, None)
    assert queue_place(str(home / "consumequeue")) == (str(home), "consumequeue", None)
    assert queue_place(str(home / "consumequeue" / "3")) == (str(home), "consumequeue", 3)
    assert queue_place(str(home / "T" / "03")) is None
    (home / "commitlog").mkdir()  # and a store's root
    assert queue_place(str(home)) is None


# ---- what modules said in different ways


def test_a_log_without_messages_is_one_whatever_lies_beside_its_files(tmp_path: Path) -> None:
    """The survey refused it as "no file of a commit log"; `CommitLog.open` did not."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / ZERO).touch()
    (tmp_path / "commitlog" / "notes").touch()
    assert "stray-log-file" in {one.kind for one in verify(tmp_path).findings}


def test_twenty_letters_are_no_file_of_a_log(tmp_path: Path) -> None:
    """The survey took such a directory for an empty log."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / ("x" * 20)).touch()
    with pytest.raises(FileStateError, match=r"no file of a commit log.*names of 20 digits"):
        verify(tmp_path)


def test_a_file_of_21_digits_tells_no_length_of_queues(tmp_path: Path) -> None:
    """It is no file that is read."""
    root = make_small_store(tmp_path / "store")
    for queue in range(100, 120):
        path = root / "consumequeue" / "Topic0" / str(queue) / f"{ZERO}0"
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(40))
    assert verify(root, **OPTIONS).settings["consume_queue_file_size"].value == QUEUE_FILE_SIZE


def test_epochs_of_a_controller_are_left_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "epochFileCheckpoint").touch()
    assert kinds.is_left_of_store(str(tmp_path))
