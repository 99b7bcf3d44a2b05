"""One look at a place elsewhere: few lists, and the answers that single requests would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqindex.files.paths import one_look
from mqindex.files.places.object_storage import ObjectStorage
from mqindex.files.places.place import Place, place_of
from mqindex.rocketmq import rebuild
from tests.support.elsewhere import Ways, memory
from tests.support.golden import case

__all__ = ["memory"]  # a fixture

pytest.importorskip("obstore")

FILES = ("a", "queue/topic/0/1", "queue/topic/1/1", "queue/topic/1/2", "log/1")
ASKED = (
    "",
    "a",
    "b",
    "queue",
    "queue/topic",
    "queue/topic/0",
    "queue/topic/0/1",
    "queue/no/0",
    "a/b",
    "log/1/x",
    "log/2",
)


def test_a_look_gives_the_same_answers_by_a_list_for_each_directory_of_the_root(
    memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = place_of("memory://bucket/store")
    assert isinstance(root, Place)
    for name in FILES:
        memory.put(f"memory://bucket/store/{name}", b"1")
    memory.put("memory://bucket/other", b"12")
    single = [_answers(root / name if name else root) for name in ASKED]
    beside = _answers(_beside(root))
    asked = _count(monkeypatch)
    with one_look(root, root / "log", "/of/this/machine"):
        assert [_answers(root / name if name else root) for name in ASKED] == single
        assert asked == ["entries store", "tree store/queue", "tree store/log"]
        assert _answers(_beside(root)) == beside
        memory.put("memory://bucket/store/log/2", b"1")
        assert not _is_there(root / "log/2")
        assert (root / "log/2").stat_now().size == 1
    assert _is_there(root / "log/2")


def test_a_file_that_is_gone_when_it_is_read_ends_what_was_known(memory: Ways) -> None:
    log = place_of("memory://store/log/1")
    memory.put(log, b"12")
    assert isinstance(log, Place)
    with one_look(Place("memory://store", log.storage)), pytest.raises(FileNotFoundError):
        assert log.stat().size == 2
        memory.store.delete("store/log/1")
        assert log.stat().size == 2
        with pytest.raises(FileNotFoundError):
            log.read(0, 2)
        log.stat()


def _beside(root: Place) -> Place:
    assert root.parent is not None
    return root.parent / "other"


def test_planning_a_rebuild_asks_for_no_absent_name(
    memory: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = memory.upload(case("basic-493").unpack(tmp_path))
    asked = _count(monkeypatch)
    assert rebuild(url, tmp_path / "out").ok
    assert len([one for one in asked if one.startswith("stat")]) <= 4, asked
    assert len([one for one in asked if one.startswith("tree")]) <= 4, asked


def _answers(place: Place) -> list[Any]:
    return [_answer(place.stat), _answer(place.entries)]


def _answer(call: Any) -> Any:
    try:
        return call()
    except FileNotFoundError as error:
        return error.filename


def _is_there(place: Place) -> bool:
    return _answer(place.stat) != place


def _count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests, from now on."""
    asked: list[str] = []
    for name in ("stat", "entries", "tree"):
        call = getattr(ObjectStorage, name)

        def counted(self: ObjectStorage, path: str, *, call: Any = call, name: str = name) -> Any:
            asked.append(f"{name} {path.partition('/')[2]}")
            return call(self, path)

        monkeypatch.setattr(ObjectStorage, name, counted)
    return asked
