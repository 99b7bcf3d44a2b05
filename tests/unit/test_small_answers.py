"""Arrays of no or one value, which are used again once nobody has them: no answer ever changes under who has it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mqindex.rocketmq import IndexFile

KEYS = [f"T#{number}" for number in range(50)]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexFile]:
    with IndexFile.create(tmp_path / "1", hash_slot_num=97, index_num=100) as file:
        file.put_keys(KEYS, range(0, 5000, 100), [1_700_000_000_000] * 50)
        yield file


def test_answers_that_are_kept_stay(index: IndexFile) -> None:
    kept = [index.select_phy_offset(key) for key in KEYS]
    assert [array.tolist() for array in kept] == [[at] for at in range(0, 5000, 100)]
    assert len({id(array) for array in kept}) == 50


@pytest.mark.parametrize("keep", [np.ndarray.view, memoryview, lambda array: array[:0], weakref.ref])
def test_whatever_refers_to_an_answer_keeps_it(index: IndexFile, keep: object) -> None:
    held = [keep(index.select_phy_offset(key)) for key in KEYS[:3]]  # type: ignore[operator]
    values = [part() if isinstance(part, weakref.ref) else np.asarray(part) for part in held]
    for key in KEYS:
        index.select_phy_offset(key)
    for number, value in enumerate(values):
        assert value is None or value.tolist() in ([], [100 * number])


def test_an_answer_may_be_changed_and_the_next_is_as_ever(index: IndexFile) -> None:
    for number, key in enumerate(KEYS * 2):
        answer = index.select_phy_offset(key)
        assert answer.dtype == np.int64 and answer.shape == (1,) and answer.flags.writeable and answer.flags.owndata
        assert answer.tolist() == [number % 50 * 100]
        answer[0] = -1
        if number % 3 == 0:
            answer.flags.writeable = False
        if number % 3 == 1:
            answer.resize(3, refcheck=False)
        del answer


def test_no_hit_is_an_array_without_values(index: IndexFile) -> None:
    answer = index.select_phy_offset("T#none")
    assert (answer.dtype, answer.shape) == (np.dtype(np.int64), (0,))
