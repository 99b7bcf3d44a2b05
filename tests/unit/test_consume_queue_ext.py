"""`ConsumeQueueExt` and `BatchConsumeQueue`: units by struct alone, their look-ups, and what is no unit."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.errors import ClosedFileError
from mqindex.rocketmq import BatchConsumeQueue, ConsumeQueue, ConsumeQueueExt
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.queue.queue_units import tag_hash
from tests.support.golden import case

EXT_SIZE = 100
ADDRESS = -(2**63)
CODES = [100, -(2**31), 0, 2112, 7, 2598919]


def ext_unit(code: int, time: int, bitmap: bytes = b"") -> bytes:
    return struct.pack(">hqqh", 20 + len(bitmap), code, time, len(bitmap)) + bitmap


def make_ext(directory: Path) -> list[tuple[int, int, int, bytes]]:
    """Files of 100 bytes that take what fits with 4 to spare; (address, tags_code, store_timestamp, bitmap) of all."""
    directory.mkdir(parents=True)
    files, rows = [b""], []
    for n, code in enumerate(CODES):
        bitmap = b"\x81" * (8 * (n % 2))
        unit = ext_unit(code, 1000 + n, bitmap)
        if len(unit) > EXT_SIZE - len(files[-1]) - 4:
            files[-1] = (files[-1] + b"\xff\xff").ljust(EXT_SIZE, b"\0")
            files.append(b"")
        rows.append((ADDRESS + EXT_SIZE * (len(files) - 1) + len(files[-1]), code, 1000 + n, bitmap))
        files[-1] += unit
    for n, data in enumerate(files):
        (directory / f"{n * EXT_SIZE:020d}").write_bytes(data.ljust(EXT_SIZE, b"\0"))
    return rows


# ---- extension units


def test_extension_units_are_found_by_their_addresses(tmp_path: Path) -> None:
    rows = make_ext(tmp_path / "ext")
    with ConsumeQueueExt.open(tmp_path / "ext") as ext:
        assert len(ext.files) == 2
        assert [ext.get(row[0]) for row in rows] == [row[1:] for row in rows]
        many = ext.get_many([row[0] for row in rows])
        assert many["found"].all() and many["tags_code"].tolist() == CODES
        assert many["store_timestamp"].tolist() == [row[2] for row in rows]
        assert many["bitmap_size"].tolist() == [len(row[3]) for row in rows]
        units = ext.units()
        assert (
            list(zip(*(units[name].tolist() for name in list(units)[:3]), units["bitmap"].to_pylist(), strict=True))
            == rows
        )


@pytest.mark.parametrize("code", [0, 7, -(2**31), 2**63 - 1, ADDRESS + 90, ADDRESS + 5 * EXT_SIZE, -(2**31) - 1])
def test_what_is_no_address_of_a_unit_finds_none(tmp_path: Path, code: int) -> None:
    make_ext(tmp_path / "ext")
    with ConsumeQueueExt.open(tmp_path / "ext") as ext:
        assert ext.get(code) is None
        assert ext.get_many([code])["found"].tolist() == [False]
        assert ext._tags_codes(np.array([code])).tolist() == [code]


def test_a_queue_follows_its_addresses_and_filters_by_what_they_say(tmp_path: Path) -> None:
    rows = make_ext(tmp_path / "ext")
    lost = ADDRESS + 10 * EXT_SIZE
    codes = [*(row[0] for row in rows), 2112, lost]
    with (
        ConsumeQueueExt.open(tmp_path / "ext") as ext,
        ConsumeQueue.open(tmp_path / "queue", file_size=60, writable=True, ext=ext) as queue,
    ):
        queue._put_units(np.array([(100 * n, n, code, 0, 100, 0) for n, code in enumerate(codes)], UNIT))
        assert queue.units()["tags_code"].tolist() == [*CODES, 2112, lost]
        # a broker that cannot read the extension unit lets the message pass
        assert queue.select([2112]).tolist() == [3, 6, 7]
        assert queue.select(["TagA", 7]).tolist() == [4, 5, 7]
        assert queue.select([1, 2, 3, 4, 5, 100]).tolist() == [0, 7]
        log = np.array([[0], [700]])
        taken = queue._take(0, 8, 8, np.array([2112], np.int32), log)
        assert (taken.queue_offsets.tolist(), taken.sizes.tolist(), taken.gone) == ([3, 6, 7], [100, 100, 0], True)
        assert not queue._take(0, 8, 8, np.array([tag_hash("TagA"), 2112], np.int32), np.array([[0], [900]])).gone
        few = queue._take(0, 8, 4, np.array([2112], np.int32), log)  # the room is for what may pass, by its hash alone
        assert (few.queue_offsets.tolist(), few.stop, few.gone) == ([3], 4, False)
    with ConsumeQueue.open(tmp_path / "queue") as queue:
        assert queue.units()["tags_code"].tolist() == codes
        assert queue.select([2112]).tolist() == list(range(8))


def test_a_brokers_extension_files_hold_a_unit_for_each_message(tmp_path: Path) -> None:
    store = case("ipv6-batch-ext-493")
    root = store.unpack(tmp_path)
    compared = 0
    for said in store.truth["consumeQueues"]:
        if not said["units"]:
            continue
        with ConsumeQueueExt.open(root / "consumequeue_ext" / said["topic"] / str(said["queueId"])) as ext:
            units = ext.units()
            assert units["address"].tolist() == [unit[2] for unit in said["units"]]
            assert units["tags_code"].tolist() == [unit[3] for unit in said["units"]]
            assert units["store_timestamp"].tolist() == [unit[4] for unit in said["units"]]
            assert [len(bitmap) for bitmap in units["bitmap"].to_pylist()] == [unit[5] for unit in said["units"]]
            compared += units.num_rows
    assert compared > 100


def test_an_extension_that_grows_is_followed(tmp_path: Path) -> None:
    rows = make_ext(tmp_path / "ext")
    last = tmp_path / "ext" / f"{EXT_SIZE:020d}"
    data = last.read_bytes()
    last.unlink()
    with ConsumeQueueExt.open(tmp_path / "ext") as ext:
        assert ext.get(rows[-1][0]) is None
    for many in (True, False):
        last.unlink(missing_ok=True)
        with ConsumeQueueExt.open(tmp_path / "ext") as ext:
            last.write_bytes(data)
            if many:
                assert ext.get_many([rows[-1][0]])["tags_code"].tolist() == [CODES[-1]]
            else:
                assert ext.get(rows[-1][0]) == rows[-1][1:]


@pytest.mark.parametrize("size", [-(2**15), -1, 0])
def test_a_size_below_1_is_no_unit_whatever_follows(tmp_path: Path, size: int) -> None:
    (tmp_path / "ext").mkdir()
    data = struct.pack(">hqqh", size, 7, 1000, 0) + ext_unit(8, 1001)
    (tmp_path / "ext" / ("0" * 20)).write_bytes(data.ljust(EXT_SIZE, b"\0"))
    with ConsumeQueueExt.open(tmp_path / "ext") as ext:
        assert (ext.get(ADDRESS), ext.get(ADDRESS + 20)) == (None, (8, 1001, b""))
        assert ext.get_many([ADDRESS, ADDRESS + 20])["found"].tolist() == [False, True]
        assert ext.units().num_rows == 0


def test_a_walk_does_not_creep_through_sizes_that_no_broker_writes(tmp_path: Path) -> None:
    (tmp_path / "ext").mkdir()
    (tmp_path / "ext" / ("0" * 20)).write_bytes(ext_unit(8, 1001) + b"\0\x01" * 4000)
    with ConsumeQueueExt.open(tmp_path / "ext") as ext:
        assert ext.units()["address"].tolist() == [ADDRESS]


@pytest.mark.parametrize("keep", range(0, 2 * EXT_SIZE, 7))
def test_cut_extension_files_give_the_units_that_are_whole(tmp_path: Path, keep: int) -> None:
    rows = make_ext(tmp_path / "ext")
    for n in range(2):
        path = tmp_path / "ext" / f"{n * EXT_SIZE:020d}"
        path.write_bytes(path.read_bytes()[: max(keep - n * EXT_SIZE, 0)])
    whole = [row for row in rows if row[0] - ADDRESS + 20 + len(row[3]) <= keep]
    with ConsumeQueueExt.open(tmp_path / "ext") as ext:
        assert [row[0] for row in rows if ext.get(row[0]) is not None] == [row[0] for row in whole]
        assert ext.get_many([row[0] for row in rows])["found"].tolist() == [row in whole for row in rows]
        assert ext.units()["address"].tolist() == [row[0] for row in whole]


def test_garbage_as_extension_units_ends_the_walk(tmp_path: Path, rng: Any) -> None:
    directory = tmp_path / "ext"
    directory.mkdir()
    for _ in range(50):
        (directory / ("0" * 20)).write_bytes(rng.randbytes(rng.randrange(1, 3000)))
        with ConsumeQueueExt.open(directory) as ext:
            addresses = ext.units()["address"]
            assert ext.get_many(addresses)["found"].all()
            ext.get_many(ADDRESS + np.arange(3000))


# ---- batch units


def batch_unit(phy: int, time: int, base: int, count: int, size: int = 300) -> bytes:
    return struct.pack(">qiqqqhii", phy, size, 0, time, base, count, -1, 0)


BATCHES = [
    (0, 1000, 0, 3),
    (300, 1000, 3, 1),
    (600, 2000, 4, 10),
    (900, 2000, 14, 2),
    (1200, 2000, 16, 5),
    (1500, 5000, 21, 4),
]


def make_batches(directory: Path, batches: Sequence[tuple[int, int, int, int]] = BATCHES, in_file: int = 4) -> None:
    directory.mkdir(parents=True)
    for n in range(0, len(batches), in_file):
        data = b"".join(batch_unit(*batch) for batch in batches[n : n + in_file])
        (directory / f"{46 * n:020d}").write_bytes(data.ljust(46 * in_file, b"\0"))


def test_a_batch_queue_knows_its_ends_and_its_units(tmp_path: Path) -> None:
    make_batches(tmp_path / "q")
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        assert (queue.min_offset_in_queue, queue.max_offset_in_queue, len(queue.files)) == (0, 25, 2)
        units = queue.units()
        assert units["msg_base_offset"].tolist() == [batch[2] for batch in BATCHES]
        assert units["batch_size"].tolist() == [batch[3] for batch in BATCHES]
        assert units["phy_offset"].tolist() == [batch[0] for batch in BATCHES]
        assert set(units["compacted_offset"].tolist()) == {-1} and set(units["size"].tolist()) == {300}


@pytest.mark.parametrize("offset", range(-2, 28))
def test_a_message_is_in_the_batch_whose_offsets_hold_it(tmp_path: Path, offset: int) -> None:
    make_batches(tmp_path / "q")
    holding = [batch for batch in BATCHES if batch[2] <= offset < batch[2] + batch[3]]
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        unit = queue.get(offset)
        found = [] if unit is None else [unit]
        assert [(one.phy_offset, one.store_timestamp, one.msg_base_offset, one.batch_size) for one in found] == holding
        after = [batch[2] for batch in BATCHES if batch[2] + batch[3] > offset]
        assert queue.units(offset)["msg_base_offset"].tolist() == after
        before = [batch[2] for batch in BATCHES if batch[2] < offset]
        assert queue.units(None, offset)["msg_base_offset"].tolist() == before


def test_batches_by_time(tmp_path: Path) -> None:
    make_batches(tmp_path / "q")
    times = (0, 1000, 1001, 2000, 2001, 4999, 5000, 9999)
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        assert [queue.get_offset_in_queue_by_time(ms) for ms in times] == [0, 0, 4, 16, 21, 21, 21, 21]
        upper = [queue.get_offset_in_queue_by_time(ms, boundary="upper") for ms in times]
        assert upper == [0, 3, 0, 16, 21, 21, 21, 21]
        with pytest.raises(ValueError, match="'lower' or 'upper'"):
            queue.get_offset_in_queue_by_time(0, boundary="none")  # type: ignore[arg-type]


def test_batches_that_the_log_has_no_longer_move_the_minimum(tmp_path: Path) -> None:
    make_batches(tmp_path / "q")
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        assert [queue.correct_min_offset(phy) for phy in (0, 1, 300, 1000)] == [0, 3, 3, 16]
        assert queue.get_offset_in_queue_by_time(0) == 16
        assert [queue.correct_min_offset(phy) for phy in (500, 9999)] == [16, 25]


@pytest.mark.parametrize("bad", [(-1, 0, 25, 1), (1800, 0, -1, 1), (1800, 0, 25, 0), (1800, 0, 25, -1)])
def test_a_batch_unit_that_is_none_ends_the_queue(tmp_path: Path, bad: tuple[int, int, int, int]) -> None:
    make_batches(tmp_path / "q", [*BATCHES, bad, (2100, 9000, 25, 1)])
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        assert (queue.units().num_rows, queue.max_offset_in_queue) == (6, 25)


def test_a_batch_queue_that_grows_is_followed(tmp_path: Path) -> None:
    make_batches(tmp_path / "q", BATCHES[:4])
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        assert queue.max_offset_in_queue == 16
        (tmp_path / "q" / f"{46 * 4:020d}").write_bytes(batch_unit(*BATCHES[4]).ljust(46 * 4, b"\0"))
        assert queue.max_offset_in_queue == 21


def test_an_empty_batch_queue(tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        assert (queue.min_offset_in_queue, queue.max_offset_in_queue, queue.units().num_rows) == (-1, 0, 0)
        assert (queue.get(0), queue.get_offset_in_queue_by_time(0), queue.correct_min_offset(5)) == (None, -1, -1)
    for call in (queue.units, lambda: queue.get(0), lambda: queue.files):
        with pytest.raises(ClosedFileError):
            call()
    with pytest.raises(FileNotFoundError):
        BatchConsumeQueue.open(tmp_path / "none")


@pytest.mark.parametrize("keep", range(0, 46 * 8, 13))
def test_cut_batch_files_give_the_units_that_are_whole(tmp_path: Path, keep: int) -> None:
    make_batches(tmp_path / "q")
    for n in range(2):
        path = tmp_path / "q" / f"{46 * 4 * n:020d}"
        path.write_bytes(path.read_bytes()[: max(keep - 46 * 4 * n, 0)])
    with BatchConsumeQueue.open(tmp_path / "q") as queue:
        assert queue.units()["phy_offset"].tolist() == [batch[0] for batch in BATCHES[: keep // 46]]


def test_garbage_as_batch_units_gives_answers(tmp_path: Path, rng: Any) -> None:
    directory = tmp_path / "q"
    directory.mkdir()
    for _ in range(50):
        units = b"".join(
            batch_unit(rng.randrange(2**40), rng.randrange(2**40), rng.randrange(2**40), rng.randrange(1, 99))
            for _ in range(9)
        )
        (directory / ("0" * 20)).write_bytes(units + rng.randbytes(300))
        with BatchConsumeQueue.open(directory) as queue:
            assert queue.units().num_rows >= 9
            for value in (0, 2**39, 2**41):
                queue.get(value)
                queue.units(value, 2 * value)
                queue.get_offset_in_queue_by_time(value, boundary="upper")
                queue.correct_min_offset(value)
