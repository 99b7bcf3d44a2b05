"""`ConsumeQueue`: the examples of the format document, refusals, states, live queues, full disks."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.consume_queue import (
    UnitTaker,
    decode_units,
    encode_units,
    group_units,
    select_tags,
)
from mqindex.errors import (
    ClosedFileError,
    FileStateError,
    GeometryError,
    OffsetOverflowError,
    ReadOnlyFileError,
)
from mqindex.rocketmq import CommitLog, ConsumeQueue, tag_hash
from mqindex.rocketmq.layout import QUEUE_FILE_SIZE
from mqindex.rocketmq.log.log_entries import UNIT
from tests.reference.consume_queue import BLANK
from tests.reference.consume_queue import UNIT as PACKED
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.tree import contents

EXAMPLE = bytes.fromhex("0000000000000400 0000007a 000000000027a807")
FIRST = "0" * 20


def unit(n: int, *, size: int = 100, code: int = 0) -> tuple[int, int, int, int, int, int]:
    """The unit of message n of a log of messages of one size, that all are in this queue."""
    return (n * size, n, code, 0, size, 0)


def units(*numbers: int) -> Any:
    return np.array([unit(n) for n in numbers], UNIT)


def file_of(*rows: tuple[int, int, int], size: int = 200) -> bytes:
    return b"".join(PACKED.pack(*row) for row in rows).ljust(size, b"\0")


@pytest.fixture
def queue(tmp_path: Path) -> Any:
    with ConsumeQueue.open(tmp_path / "T" / "0", file_size=200, writable=True) as opened:
        yield opened


def names(queue: ConsumeQueue) -> list[str]:
    return sorted(os.listdir(queue.directory))


# ---- bytes


def test_a_unit_is_the_documents_example(queue: ConsumeQueue) -> None:
    assert queue.put_message_position_info(1024, 122, tag_hash("TagA"), 0)
    assert Path(queue.directory, FIRST).read_bytes() == EXAMPLE.ljust(200, b"\0")
    assert (queue.max_phy_offset, queue.max_offset_in_queue) == (1146, 1)


@pytest.mark.parametrize(
    ("tags", "hashed"), [("TagA", 2598919), ("pay-success", -1685804066), ("", 0), ("Aa", 2112), ("😀", 1772899),
                         ("polygenelubricants", -(2**31))],
)  # fmt: skip
def test_the_hash_of_tags_is_javas(tags: str, hashed: int) -> None:
    assert tag_hash(tags) == hashed


def test_a_full_file_is_followed_by_the_next(queue: ConsumeQueue) -> None:
    assert queue._put_units(units(*range(25))) == (25, 0, 0)
    assert names(queue) == [FIRST, f"{200:020d}", f"{400:020d}"]
    assert [(file.start, file.size) for file in queue.files] == [(0, 200), (200, 200), (400, 200)]
    assert Path(queue.directory, names(queue)[2]).read_bytes() == file_of(*((n * 100, 100, 0) for n in range(20, 25)))


def test_a_queue_that_begins_later_begins_with_blanks(queue: ConsumeQueue) -> None:
    assert queue._put_units(units(13, 14)) == (2, 0, 0)
    assert names(queue) == [f"{200:020d}"]
    assert Path(queue.directory, names(queue)[0]).read_bytes() == (
        BLANK * 3 + file_of((1300, 100, 0), (1400, 100, 0))
    )[:200]  # fmt: skip
    assert (queue.min_offset_in_queue, queue.max_offset_in_queue, queue.min_logic_offset) == (13, 15, 260)
    assert queue.units(0)["queue_offset"].tolist() == [13, 14]


def test_blanks_are_no_units_for_a_reader_either(queue: ConsumeQueue) -> None:
    queue._put_units(units(13, 14))
    with ConsumeQueue.open(queue.directory) as reader:
        assert (reader.min_offset_in_queue, reader.max_offset_in_queue, reader.max_phy_offset) == (13, 15, 1500)
        assert reader.units()["phy_offset"].tolist() == [1300, 1400]


def test_only_blanks_suppress_no_message(queue: ConsumeQueue) -> None:
    # A broker takes the blanks' end, 2147483647, for that of a message, and skips all that ends before it.
    Path(queue.directory, FIRST).write_bytes((BLANK * 5).ljust(200, b"\0"))
    queue.close()
    with ConsumeQueue.open(queue.directory, writable=True) as again:
        assert (again.max_phy_offset, again.min_offset_in_queue, again.max_offset_in_queue) == (-1, 5, 5)
        assert again._put_units(units(5)).written == 1
        assert again.units()["phy_offset"].tolist() == [500]


# ---- the broker's rules of putting


def test_what_ends_no_later_is_there_already(queue: ConsumeQueue) -> None:
    queue._put_units(units(0, 1, 2))
    assert not queue.put_message_position_info(100, 200, 7, 3)
    assert queue.put_message_position_info(100, 201, 7, 3)


def test_a_queue_offset_before_the_end_is_a_repeated_build_except_0(queue: ConsumeQueue) -> None:
    queue._put_units(units(0, 1, 2))
    assert not queue.put_message_position_info(1000, 100, 0, 2)
    assert queue.put_message_position_info(1000, 100, 0, 0)
    assert queue.units(3)["phy_offset"].tolist() == [1000]


def test_a_unit_behind_a_hole_is_written_at_the_end_and_counted(queue: ConsumeQueue) -> None:
    assert queue._put_units(units(0, 1, 5, 6)) == (4, 0, 2)
    assert queue.units()["phy_offset"].tolist() == [0, 100, 500, 600]


def test_holes_are_filled_where_that_is_asked_for(queue: ConsumeQueue) -> None:
    queue._put_units(units(3), fill_holes=True)
    assert queue._put_units(units(3, 4, 7, 8, 25), fill_holes=True) == (4, 1, 0)
    assert (queue.min_offset_in_queue, queue.max_offset_in_queue) == (3, 26)
    sizes = queue.units(3, 26)["size"].tolist()
    assert [n for n, size in enumerate(sizes, 3) if size != 2**31 - 1] == [3, 4, 7, 8, 25]
    assert queue._put_units(units(4, 7, 26), fill_holes=True) == (1, 2, 0)


def test_a_hole_larger_than_the_log_allows_is_not_filled(queue: ConsumeQueue) -> None:
    queue._put_units(units(0), fill_holes=True)
    far = units(1)
    far["queue_offset"] = 10**9
    assert queue._put_units(far, fill_holes=True) == (1, 0, 1)
    assert queue.max_offset_in_queue == 2


@pytest.mark.parametrize("bad", [(-1, 0, 0, 0, 100, 0), (0, 0, 0, 0, 0, 0), (0, 0, 0, 0, -1, 0)])
def test_what_would_be_no_unit_is_refused(queue: ConsumeQueue, bad: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="phy offsets of 0 or more and sizes above 0"):
        queue._put_units(np.array([unit(0), bad], UNIT))
    assert names(queue) == []


@pytest.mark.parametrize("queue_offset", [-1, 2**62, 2**63 // 20])
def test_a_queue_offset_without_a_place_is_refused(queue: ConsumeQueue, queue_offset: int) -> None:
    with pytest.raises(OffsetOverflowError, match="queue_offset"):
        queue.put_message_position_info(0, 100, 0, queue_offset)
    assert names(queue) == [] and queue._put_units(units(0)).written == 1


# ---- the end, as recovery finds it


def test_bytes_behind_the_end_do_not_come_back(queue: ConsumeQueue) -> None:
    path = Path(queue.directory, FIRST)
    path.write_bytes(file_of((0, 100, 0), (0, 0, 0), (777, 100, 0), (888, 100, 0)))
    Path(queue.directory, f"{200:020d}").write_bytes(file_of((999, 100, 0)))
    queue.close()
    with ConsumeQueue.open(queue.directory, writable=True) as again:
        assert again.max_offset_in_queue == 1
        assert again._put_units(units(1)).written == 1
    assert path.read_bytes() == file_of((0, 100, 0), (100, 100, 0))
    assert names(queue) == [FIRST]


def test_opening_and_closing_changes_nothing(queue: ConsumeQueue) -> None:
    Path(queue.directory, FIRST).write_bytes(file_of((0, 100, 0), (0, 0, 0), (777, 100, 0)))
    before = contents(Path(queue.directory))
    queue.close()
    ConsumeQueue.open(queue.directory, writable=True).close()
    assert contents(Path(queue.directory)) == before


def test_only_the_last_three_files_are_looked_through(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(45)))
    with Path(queue.directory, FIRST).open("r+b") as file:
        file.write(bytes(40))
    with ConsumeQueue.open(queue.directory) as reader:
        assert reader.max_offset_in_queue == 45


def test_a_cut_zeroes_what_it_cuts(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(25)))
    queue.truncate_dirty_logic_files(1250)
    assert (queue.max_offset_in_queue, queue.max_phy_offset) == (13, 1300)
    assert names(queue) == [FIRST, f"{200:020d}"]
    assert Path(queue.directory, names(queue)[1]).read_bytes() == file_of(*((n * 100, 100, 0) for n in range(10, 13)))


def test_a_cut_of_everything_leaves_an_empty_queue(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(25)))
    queue.truncate_dirty_logic_files(0)
    assert (queue.max_offset_in_queue, names(queue), queue.max_phy_offset) == (0, [], 0)
    assert queue._put_units(units(30)) == (1, 0, 0)
    assert queue.min_offset_in_queue == 30


def test_the_minimum_is_the_first_unit_that_the_log_has(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(25)))
    assert queue.correct_min_offset(1250) == queue.min_offset_in_queue == 13
    assert queue.units(0, 15)["queue_offset"].tolist() == [13, 14]
    assert queue.correct_min_offset(100) == 13
    assert queue.correct_min_offset(10**6) == 25
    with ConsumeQueue.open(queue.directory) as reader:
        assert reader.correct_min_offset(10**6) == 25
        assert (reader.units().num_rows, reader.max_phy_offset) == (0, 2500)


# ---- a queue of a broker that runs


def test_more_tags_than_a_filter_holds_are_no_memory() -> None:
    many, unit = np.zeros((1 << 23) + 1, np.int32), PACKED.pack(0, 100, 0)
    with pytest.raises(MemoryError):
        select_tags(unit, 0, 1, many)
    with pytest.raises(MemoryError):
        UnitTaker(many, np.zeros((2, 0), np.int64), 1).take(unit, 0, 1, 0)
    assert select_tags(unit, 0, 1, many[:-1]).tolist() == [0]


def test_a_reader_follows_a_queue_that_grows_and_rolls(queue: ConsumeQueue) -> None:
    with ConsumeQueue.open(queue.directory) as reader:
        assert (reader.max_offset_in_queue, reader.units().num_rows) == (0, 0)
        for n in range(45):
            queue._put_units(units(n))
            assert reader.max_offset_in_queue == n + 1
        assert reader.units()["phy_offset"].tolist() == [100 * n for n in range(45)]
        assert len(reader.files) == 5


def test_one_look_tells_the_bounds_wherever_a_file_ends(queue: ConsumeQueue) -> None:
    with ConsumeQueue.open(queue.directory) as reader:
        assert reader.bounds() == queue.bounds() == (0, 0, -1)
        for n in range(25):
            queue._put_units(units(n))
            assert reader.bounds() == queue.bounds() == (0, n + 1, 100 * n + 100)
        Path(queue.directory, FIRST).unlink()
        assert reader.bounds() == (10, 25, 2500)
        os.truncate(Path(queue.directory, f"{400:020d}"), 40)
        assert reader.bounds() == (10, 25, -1)
        os.unlink(Path(queue.directory, f"{400:020d}"))
        assert reader.bounds() == (10, 25, -1)
    Path(queue.directory, f"{400:020d}").write_bytes(bytes(200))  # brokers make the next file ahead
    with ConsumeQueue.open(queue.directory) as reader:
        assert reader.bounds() == (10, 20, 2000)


def test_a_reader_follows_a_queue_that_begins_later(tmp_path: Path) -> None:
    with (
        ConsumeQueue.open(tmp_path / "0", file_size=200, writable=True) as queue,
        ConsumeQueue.open(tmp_path / "0") as reader,
    ):
        assert reader.max_offset_in_queue == 0
        queue._put_units(units(58, 59, 60))
        assert (reader.min_offset_in_queue, reader.max_offset_in_queue) == (58, 61)


def test_files_that_a_broker_deletes_are_no_longer_in_the_queue(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(25)))
    with ConsumeQueue.open(queue.directory) as reader:
        assert reader.min_offset_in_queue == 0
        Path(queue.directory, FIRST).unlink()
        assert (reader.min_offset_in_queue, reader.max_offset_in_queue) == (10, 25)
        assert reader.units()["queue_offset"].tolist() == list(range(10, 25))


def test_a_file_that_is_missing_leaves_a_hole(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(25)))
    Path(queue.directory, f"{200:020d}").unlink()
    with ConsumeQueue.open(queue.directory) as reader:
        assert reader.units()["queue_offset"].tolist() == [*range(10), *range(20, 25)]
        assert reader.select([0], 5).tolist() == [*range(5, 10), *range(20, 25)]
        assert (reader.units(10, 20).num_rows, reader.max_offset_in_queue) == (0, 25)


def test_many_threads_read_beside_one_that_writes(queue: ConsumeQueue) -> None:
    seen: list[list[int]] = []

    def read() -> None:
        with ConsumeQueue.open(queue.directory) as reader:
            while reader.max_offset_in_queue < 400:
                for one in (reader, queue):
                    found = one.units()["phy_offset"].tolist()
                    if found != [100 * n for n in range(len(found))]:
                        seen.append(found)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(0, 400, 4):
        queue._put_units(units(*range(n, n + 4)))
    for thread in threads:
        thread.join(60)
    assert seen == [] and not any(thread.is_alive() for thread in threads)


# ---- states


def test_a_reader_refuses_to_write(queue: ConsumeQueue) -> None:
    with ConsumeQueue.open(queue.directory) as reader:
        for call in (lambda: reader._put_units(units(0)), lambda: reader.truncate_dirty_logic_files(0)):
            with pytest.raises(ReadOnlyFileError, match="writable=True"):
                call()
        reader.flush()


@pytest.mark.parametrize("writable", [True, False])
def test_closed_is_closed(queue: ConsumeQueue, writable: bool) -> None:
    queue._put_units(units(0))
    queue.close()
    other = ConsumeQueue.open(queue.directory, writable=writable)
    other.close()
    other.close()
    for call in (other.units, lambda: other.max_offset_in_queue, lambda: other.select(["A"]), lambda: other.files):
        with pytest.raises(ClosedFileError):
            call()
    if writable:
        with pytest.raises(ClosedFileError):
            other._put_units(units(1))


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ConsumeQueue.open(tmp_path / "none")
    with ConsumeQueue.open(tmp_path / "new", writable=True) as queue:
        assert queue.file_size == QUEUE_FILE_SIZE


def test_a_writer_refuses_files_of_another_size(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(25)))
    queue.close()
    with pytest.raises(GeometryError, match="expected 400 bytes, got 200"):
        ConsumeQueue.open(queue.directory, file_size=400, writable=True)
    with pytest.raises(ValueError, match="multiple of 20, got 30"):
        ConsumeQueue.open(queue.directory, file_size=30)


def test_a_file_that_somebody_cuts_is_not_written_into(queue: ConsumeQueue) -> None:
    queue._put_units(units(*range(25)))
    os.truncate(Path(queue.directory, FIRST), 100)
    queue.truncate_dirty_logic_files(150)
    with pytest.raises(FileStateError, match="length of a queue file changed"):
        queue._put_units(units(*range(2, 25)))


def test_new_files_take_owner_and_mode_of_their_neighbours(queue: ConsumeQueue) -> None:
    os.chmod(queue.directory, 0o750)
    queue._put_units(units(*range(5)))
    first = Path(queue.directory, FIRST)
    assert stat.S_IMODE(first.stat().st_mode) == 0o640
    first.chmod(0o600)
    queue._put_units(units(*range(5, 15)))
    assert stat.S_IMODE(Path(queue.directory, f"{200:020d}").stat().st_mode) == 0o600


def test_wrong_arguments_are_named(queue: ConsumeQueue, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="several tags"):
        queue.select("TagA")
    LogWriter(tmp_path / "log").write(LogMessage())
    with CommitLog.open(tmp_path / "log") as log, pytest.raises(ValueError, match="'lower' or 'upper'"):
        queue.get_offset_in_queue_by_time(0, log, boundary="middle")  # type: ignore[arg-type]


def test_a_full_disk_is_an_exception_and_the_put_may_be_repeated(
    queue: ConsumeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue._put_units(units(*range(8)))
    real, room = os.pwrite, [60]

    def limited(fd: int, data: Any, at: int) -> int:
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = real(fd, data[: room[0]], at)
        room[0] -= done
        return done

    monkeypatch.setattr(os, "pwrite", limited)
    with pytest.raises(OSError, match="No space left"):
        queue._put_units(units(*range(8, 25)))
    assert (queue.max_offset_in_queue, queue.max_phy_offset) == (8, 800)
    monkeypatch.setattr(os, "pwrite", real)
    assert queue._put_units(units(8, 9)) == (2, 0, 0)
    with ConsumeQueue.open(queue.directory) as reader:
        assert reader.max_offset_in_queue == 10


def test_a_file_that_cannot_be_made_leaves_no_scrap(queue: ConsumeQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue._put_units(units(*range(8)))

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(OSError, match="No space left"):
        queue._put_units(units(*range(8, 25)))
    assert os.listdir(Path(queue.directory).parent) == ["0"]
    monkeypatch.undo()
    assert queue._put_units(units(*range(8, 25))).written == 17


@pytest.mark.parametrize("after", range(4))
def test_a_writer_that_dies_between_two_steps_leaves_files_of_full_length(
    queue: ConsumeQueue, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    queue._put_units(units(*range(13, 18)))
    steps = [0]

    def dying(call: Any) -> Any:
        def step(*arguments: Any) -> Any:
            steps[0] += 1
            if steps[0] > after:
                raise KeyboardInterrupt
            return call(*arguments)

        return step

    for name in ("pwrite", "ftruncate", "rename"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))
    with pytest.raises(KeyboardInterrupt):
        queue._put_units(units(*range(18, 33)))
    monkeypatch.undo()
    assert {path.stat().st_size for path in Path(queue.directory).iterdir()} == {200}
    queue.close()
    with ConsumeQueue.open(queue.directory, writable=True) as again:
        assert again._put_units(units(*range(13, 33))).repeated >= 5
        assert again.units()["phy_offset"].tolist() == [100 * n for n in range(13, 33)]
    assert os.listdir(Path(queue.directory).parent) == ["0"]


# ---- kernels


def test_kernels_name_what_they_do_not_take() -> None:
    with pytest.raises(ValueError, match=r"expected queues 0\.\.0, got 1 at 1"):
        group_units(np.array([(0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 1, 1)], UNIT), 1)
    with pytest.raises(ValueError, match=r"expected queues 0\.\.0, got -1 at 0"):
        group_units(np.array([(0, 0, 0, 0, 1, -1)], UNIT), 1)
    two = np.array([(0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 1, 1)], UNIT)
    with pytest.raises(ValueError, match="out: expected room for 2, got 1"):
        group_units(two, 2, np.empty(1, UNIT))
    with pytest.raises(TypeError, match="parts: expected an array"):
        UnitTaker(None, np.zeros(2, np.int64), 1)
    with pytest.raises(ValueError, match="room: expected 0 or more, got -1"):
        UnitTaker(None, np.zeros((2, 1), np.int64), -1)
    with pytest.raises(ValueError, match=r"expected positions 0\.\.1 in order, got 0 and 2"):
        UnitTaker(None, np.zeros((2, 1), np.int64), 1).take(bytes(39), 0, 2, 0)
    with pytest.raises(ValueError, match=r"0\.\.1 in order, got 0 and 2"):
        decode_units(bytes(39), 0, 2)
    with pytest.raises(TypeError, match="40 bytes a row"):
        encode_units(np.zeros(3), 0, -1)
