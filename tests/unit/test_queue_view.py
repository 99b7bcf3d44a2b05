"""`get_messages` of places remembers a queue as it was: whatever changes since is seen by the next call."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.guard import Mapping
from mqindex._native.queue_view import QueueView
from mqindex.errors import ClosedFileError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import MessageStore
from mqindex.rocketmq.log.expiry import LOOK_AGAIN_SECONDS
from mqindex.rocketmq.serving.get_message import GetMessageResult
from tests.support.queued_store import make_queued_store, tagged, write_units

PLACES = ["queue_offset", "phy_offset", "size"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_queued_store(tmp_path / "store", tagged(120))


def places(opened: MessageStore, offset: int, most: int = 8, **options: Any) -> GetMessageResult[Any]:
    asked = {"tags": "TagA || TagB", "columns": PLACES, "exact": False} | options
    return opened.get_messages("Topic", 0, offset, max_msg_nums=most, **asked)


def told(answer: GetMessageResult[Any]) -> tuple[object, ...]:
    columns = [(name, getattr(column, "dtype", None), list(column)) for name, column in answer.messages.items()]
    return (*answer[:4], columns, answer.messages.num_rows)


def python_calls(call: Callable[[], object]) -> list[str]:
    """The functions of Python that a call runs."""
    seen: list[str] = []
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen[1:]  # the first is `call` itself


def delete_the_first(root: Path) -> None:
    (root / "consumequeue/Topic/0/00000000000000000000").unlink()


def append(root: Path) -> None:
    write_units(root, "Topic", 0, [(0, 100, 2598919)], first=120)


def recover_shorter(root: Path) -> None:
    write_units(root, "Topic", 0, [(0, 0, 0)] * 3, first=117)


def write_another_last(root: Path) -> None:
    write_units(root, "Topic", 0, [(300, 120, 0)], first=119)


def cut(root: Path) -> None:
    os.truncate(root / "consumequeue/Topic/0/00000000000000001000", 300)


@pytest.mark.parametrize("change", [delete_the_first, append, recover_shorter, write_another_last, cut])
@pytest.mark.parametrize("offset", [0, 50, 60, 110])
def test_what_has_changed_since_the_last_call_is_seen(
    root: Path, change: Callable[[Path], None], offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MessageStore.open(root) as opened, MessageStore.open(root) as slow:
        monkeypatch.setattr(slow._places, "remember", lambda *_: None)
        assert told(places(opened, offset)) == told(places(slow, offset))
        change(root)
        time.sleep(LOOK_AGAIN_SECONDS)  # until then a file that was deleted may be thought to be there
        for at in (offset, offset + 4, 119, 120, 121):
            assert told(places(opened, at)) == told(places(slow, at))
            assert told(places(opened, at, 100)) == told(places(slow, at, 100))


def test_a_call_that_goes_on_runs_no_function_of_python_but_one_for_the_columns(root: Path) -> None:
    with MessageStore.open(root) as opened:
        assert "bounds" in python_calls(lambda: places(opened, 0))
        assert python_calls(lambda: places(opened, 10)) == ["places", "get_messages", "_of_length"]


@pytest.mark.parametrize(
    ("offset", "options"),
    [
        (13, {}), (13, {"tags": None}), (13, {"tags": "*"}), (13, {"tags": "TagC"}), (45, {"most": 30}),
        (45, {"most": 2}), (49, {"most": 1}), (119, {}), (118, {"tags": None}), (120, {}), (121, {}), (-1, {}),
        (13, {"columns": ["size"]}), (13, {"columns": ("size", "queue_offset", "size")}), (13, {"columns": []}),
        (13, {"columns": ["size", "topic"]}), (13, {"most": 2**62}), (2**62, {}), (0, {"most": 200, "tags": None}),
    ],
)  # fmt: skip
def test_a_remembered_queue_answers_like_one_just_opened(root: Path, offset: int, options: dict[str, Any]) -> None:
    with MessageStore.open(root) as opened, MessageStore.open(root) as fresh:
        expected = places(fresh, offset, **options)
        for at in (0, 100, 13):
            places(opened, at, tags=options.get("tags", "TagA || TagB"))
            assert told(places(opened, offset, **options)) == told(expected)


def test_arguments_that_are_no_request_are_told_as_ever(root: Path) -> None:
    with MessageStore.open(root) as opened:
        places(opened, 0)
        for options, named in (
            ({"tags": ["TagA"]}, "tags"),
            ({"columns": "size"}, "columns"),
            ({"most": 1.5}, "max_msg"),
        ):
            with pytest.raises(TypeError, match=named):
                places(opened, 0, **options)
        with pytest.raises(ValueError, match="columns: expected some of"):
            places(opened, 0, columns=["sizes"])
        with pytest.raises(ValueError, match="max_msg_nums: expected 1 or more"):
            places(opened, 0, 0)
        with pytest.raises(TypeError, match="topic"):
            opened.get_messages(["Topic"], 0, 0, max_msg_nums=1, exact=False, columns=PLACES)  # type: ignore[arg-type]


def test_a_minimum_that_somebody_moves_is_moved_at_once(root: Path) -> None:
    with MessageStore.open(root) as opened:
        third = int(places(opened, 0, tags=None).messages["phy_offset"][3])
        queue = opened.consume_queue("Topic", 0)
        assert queue is not None
        assert queue.correct_min_offset(third) == 3
        assert places(opened, 0, tags=None)[:3] == ("OFFSET_TOO_SMALL", 3, 3)


def test_who_has_closed_store_or_queue_is_told(root: Path) -> None:
    opened = MessageStore.open(root)
    places(opened, 0)
    queue = opened.consume_queue("Topic", 0)
    assert queue is not None
    queue.close()
    with pytest.raises(ClosedFileError):
        places(opened, 0)
    opened.close()
    with pytest.raises(ClosedFileError):
        places(opened, 0)


def test_many_queues_are_not_all_remembered(tmp_path: Path) -> None:
    root = make_queued_store(tmp_path, tagged(3))
    for number in range(100):
        write_units(root, "Many", number, [(0, 100, 0)])
    with MessageStore.open(root) as opened:
        for _ in range(2):
            for number in range(100):
                answer = opened.get_messages("Many", number, 0, max_msg_nums=1, exact=False, columns=PLACES)
                assert told(answer)[:4] == ("FOUND", 1, 0, 1)


def test_a_view_is_of_a_file_and_of_the_one_that_has_the_end(root: Path) -> None:
    parts = np.array([[0], [10**9]])
    with MappedFile.open(root / "consumequeue/Topic/0/00000000000000002000") as file:
        mapping: Mapping = file.map
        for first, places_, tail_first, low, high in (
            (-1, 50, 100, 0, 120), (100, 51, 100, 0, 120), (100, 50, 100, 120, 120), (100, 50, 120, 0, 120),
            (100, 50, 100, 0, 150), (100, -1, 100, 0, 120), (100, 50, -1, 0, 20),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="expected a file of the queue"):
                QueueView(mapping, first, places_, mapping, tail_first, low, high, parts, b"x", 1.0)
        assert QueueView(mapping, 100, 50, mapping, 100, 0, 120, parts, b"x", 1.0)
