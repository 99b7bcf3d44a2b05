"""A file elsewhere that is read in order: what comes next is asked for while one part is used."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqindex.errors import FileStateError
from mqindex.files.places import remote_file
from mqindex.files.places.ahead import IN_FLIGHT, Ahead
from mqindex.files.places.place import Place, place_of
from mqindex.files.places.remote_file import RemoteFile
from mqindex.rocketmq import rebuild
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.log_writer import LogMessage, LogWriter

__all__ = ["memory"]  # a fixture

BLOCK, REQUEST, SIZE = 4096, 8192, 100_000
DATA = random.Random(1).randbytes(SIZE)
URL = "memory://files/log"


@pytest.fixture(autouse=True)
def _small(memory: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "_BLOCK", BLOCK)
    monkeypatch.setattr(remote_file, "REQUEST", REQUEST)


@pytest.fixture
def file() -> Iterator[RemoteFile]:
    WAYS.put(URL, DATA)
    place = place_of(URL)
    assert isinstance(place, Place)
    with RemoteFile(place) as opened:
        yield opened


def shown(file: RemoteFile, start: int, stop: int) -> bytes:
    return bytes(memoryview(file.window(start, stop))[start:stop])


def test_windows_in_order_have_the_bytes_of_the_file_and_ask_for_each_once(file: RemoteFile) -> None:
    file.ahead(5000, SIZE)
    at = 5000
    while at < SIZE:
        size = random.Random(at).randrange(1, 3 * REQUEST)
        assert shown(file, at, at + size) == DATA[at : at + size]
        file.release(at)
        at += size
    asked = [(start, stop) for _, start, stop in sorted(WAYS.ranges, key=lambda one: one[1])]
    assert asked[0][0] == BLOCK and asked[-1][1] == SIZE
    assert all(one[1] == two[0] for one, two in itertools.pairwise(asked)), "none twice, none left out"


def test_what_comes_next_is_asked_for_before_a_window_needs_it(file: RemoteFile) -> None:
    file.ahead(0, SIZE)
    shown(file, 0, 10)
    file.close()
    assert len(WAYS.ranges) == 1 + IN_FLIGHT


def test_requests_wait_beside_each_other(file: RemoteFile) -> None:
    WAYS.waits = True
    file.ahead(0, SIZE)
    shown(file, 0, 10)
    assert WAYS.most_at_once > 1


def test_a_jump_forward_or_back_shows_the_bytes_of_the_file(file: RemoteFile) -> None:
    file.ahead(0, SIZE)
    for at in (60_000, 10_000, 70_000, 0, 99_990):
        assert shown(file, at, at + 10) == DATA[at : at + 10]


def test_what_is_there_already_is_left_as_it_is(file: RemoteFile) -> None:
    """Somebody else may be reading it."""
    before = file.window(9000, 10_000)
    file.ahead(0, SIZE)
    shown(file, 0, SIZE)
    assert bytes(before[9000:10_000]) == DATA[9000:10_000]
    assert shown(file, 0, SIZE) == DATA


def test_the_error_of_a_request_comes_with_the_window_that_needs_it(file: RemoteFile) -> None:
    file.ahead(0, SIZE)
    shown(file, 0, 10)
    WAYS.failing = PermissionError("no")
    with pytest.raises(PermissionError):
        shown(file, 0, SIZE)
    WAYS.failing = None
    assert shown(file, 0, SIZE) == DATA, "asked for again"


def test_a_file_that_was_replaced_meanwhile_is_an_error(file: RemoteFile) -> None:
    file.ahead(0, SIZE)
    shown(file, 0, 10)
    WAYS.put(URL, DATA[::-1])
    with pytest.raises(FileStateError, match="replaced"):
        shown(file, 0, SIZE)


def test_no_request_is_left_when_the_file_is_closed(file: RemoteFile) -> None:
    file.ahead(0, SIZE)
    file.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("mqindex-ahead")]


def test_without_threads_ranges_are_read_when_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    ahead = Ahead(lambda start, stop: memoryview(DATA)[start:stop], [(0, 5), (5, 9)])
    assert [ahead.take() for _ in range(2)] == [(0, DATA[:5]), (5, DATA[5:9])]
    assert ahead.at is None


def test_a_rebuild_reads_its_splits_ahead(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=1 << 18)
    for n in range(100):
        writer.write(LogMessage(keys=f"k{n}", body=bytes(2000)))
    url = WAYS.upload(tmp_path / "store")
    WAYS.waits = True
    rebuild(url, tmp_path / "out", index_num=50, hash_slot_num=20, engine=None)
    assert WAYS.most_at_once > 2
