"""`verify` and `rebuild` leave the zone maps that a scan would make."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex import kafka, rocketmq
from mqindex.columns.columns import Columns
from mqindex.engines import LocalEngine
from mqindex.rocketmq.tally import split_zones
from mqindex.zones.cache import identity_of
from tests.support.golden import case
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.growing_store import GrowingStore
from tests.support.log_writer import LogWriter

WHOLE = {"clock-back-493", "exactfit-493", "ipv6-batch-ext-493", "killed-lost-493", "rolls-493"}
OTHERS = {"medium-493", "tx-delay-lmq-493"}  # messages without a unit, or with several
MARK, CRC_BYTES = slice(40, 72), 4
Pass = Callable[[Path, Path, Path], None]


def kept(cache: Path) -> dict[str, bytes]:
    """The maps by the names of their files, without what tells whether a file that has grown still has them."""
    found = {path.name: path.read_bytes() for path in cache.iterdir()} if cache.is_dir() else {}
    return {name: data[: MARK.start] + data[MARK.stop : -CRC_BYTES] for name, data in found.items()}


def of_scan(store: Path, cache: Path) -> dict[str, bytes]:
    with rocketmq.scan(store, begin=0, columns=["phy_offset"], cache=cache) as found:
        for _ in found:
            pass
    return kept(cache)


def verified(store: Path, cache: Path, out: Path) -> None:
    rocketmq.verify(store, cache=cache, engine=LocalEngine(2))


def rebuilt(store: Path, cache: Path, out: Path) -> None:
    rocketmq.rebuild(store, out, cache=cache, split_size=4096, engine=LocalEngine(2))


@pytest.mark.parametrize("name", sorted(WHOLE | OTHERS))
@pytest.mark.parametrize("pass_over", [verified, rebuilt])
def test_the_maps_are_those_of_a_scan(name: str, pass_over: Pass, tmp_path: Path) -> None:
    store = case(name).unpack(tmp_path)
    pass_over(store, tmp_path / "passed", tmp_path / "out")
    found, expected = kept(tmp_path / "passed"), of_scan(store, tmp_path / "scanned")
    assert found == expected != {}


def of_kafka_scan(partition: Path, cache: Path) -> dict[str, bytes]:
    for _ in kafka.scan(partition, begin=0, columns=["offset"], cache=cache):
        pass
    return kept(cache)


def kafka_verified(partition: Path, cache: Path, out: Path) -> None:
    kafka.verify(partition, deep=True, cache=cache, engine=LocalEngine(2))


def kafka_rebuilt(partition: Path, cache: Path, out: Path) -> None:
    kafka.rebuild(partition, out, cache=cache, engine=LocalEngine(2))


KAFKA_PASSES = pytest.mark.parametrize("pass_over", [kafka_verified, kafka_rebuilt])


@pytest.mark.parametrize("name", PARTITION_CASES)
@KAFKA_PASSES
def test_of_kafka_the_maps_are_those_of_a_scan(name: str, pass_over: Pass, tmp_path: Path) -> None:
    for partition in sorted({log.parent for log in PartitionCase(name).unpack(tmp_path).rglob("*.log")}):
        passed, scanned = (tmp_path / f"{way}-{partition.parent.name}" for way in ("passed", "scanned"))
        pass_over(partition, passed, tmp_path / f"out-{partition.parent.name}")
        found, expected = kept(passed), of_kafka_scan(partition, scanned)
        assert found == expected, partition
        assert {path.name: path.read_bytes() for path in passed.glob("*")} == {
            path.name: path.read_bytes() for path in scanned.glob("*")
        }


@KAFKA_PASSES
def test_of_kafka_none_is_kept_of_a_damaged_log(pass_over: Pass, tmp_path: Path) -> None:
    partition = PartitionCase("410-backwards").closed(tmp_path)
    log = max(partition.glob("*.log"), key=lambda path: path.stat().st_size)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    pass_over(partition, tmp_path / "passed", tmp_path / "out")
    assert identity_of(str(log)).name.hex() not in kept(tmp_path / "passed")
    assert kept(tmp_path / "passed") == of_kafka_scan(partition, tmp_path / "scanned")


@pytest.mark.parametrize("name", ["410-backwards", "410-txn", "282-magic1-codecs", "410-compacted"])
def test_of_kafka_scans_answer_the_same(name: str, tmp_path: Path) -> None:
    partition, draw = PartitionCase(name).closed(tmp_path), random.Random(name)
    kafka_verified(partition, tmp_path / "cache", tmp_path)
    rows = [row for batch in kafka.scan(partition, cache=False) for row in zip(*lists(batch), strict=True)]
    for _ in range(30):
        (begin, first), (end, last) = draw.choice(rows), draw.choice(rows)
        for bounds in ({"begin": begin, "end": end}, {"end": end, "start_offset": first}, {"end_offset": last}):
            answers = [
                [offset for batch in kafka.scan(partition, cache=cache, **bounds) for offset in lists(batch)[1]]
                for cache in (tmp_path / "cache", False)
            ]
            assert answers[0] == answers[1], bounds


def lists(batch: Columns) -> tuple[list[int], list[int]]:
    return batch["timestamp"].astype("i8").tolist(), batch["offset"].tolist()


def test_of_kafka_what_is_in_a_cache_changes_no_map(tmp_path: Path) -> None:
    partition, cache = PartitionCase("410-backwards").closed(tmp_path), tmp_path / "cache"
    expected = of_kafka_scan(partition, tmp_path / "scanned")
    cache.mkdir()
    for name in expected:
        (cache / name).write_bytes(b"MQZONES1" + bytes(300))
    kafka_verified(partition, cache, tmp_path)
    assert kept(cache) == expected


def test_of_kafka_a_cache_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    partition, cache = PartitionCase("410-backwards").closed(tmp_path), tmp_path / "cache"
    cache.write_bytes(b"a file")
    found = [kafka.verify(partition, deep=True, cache=where).findings for where in (cache, False)]
    assert found[0] == found[1] and kafka.rebuild(partition, tmp_path / "out", cache=cache).ok


def test_of_kafka_a_rebuild_needs_no_codec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **named: object) -> bytes:
        raise ImportError("the extra is not installed")

    partition = PartitionCase("410-codecs").closed(tmp_path)
    monkeypatch.setattr("mqindex.kafka.log.records.decompress", missing)
    assert kafka.rebuild(partition, tmp_path / "out", cache=tmp_path / "cache", engine=LocalEngine(1)).ok
    assert not kept(tmp_path / "cache")


def test_of_kafka_a_look_at_headers_leaves_no_map(tmp_path: Path) -> None:
    partition = PartitionCase("410-backwards").closed(tmp_path)
    kafka.verify(partition, cache=tmp_path / "cache")
    kafka.verify(partition, deep=True, check_crc=False, cache=tmp_path / "cache")
    kafka.rebuild(partition, tmp_path / "out")
    assert not kept(tmp_path / "cache")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("pass_over", [verified, rebuilt])
def test_messages_without_units_are_in_the_maps(seed: int, pass_over: Pass, tmp_path: Path) -> None:
    store, draw = GrowingStore(tmp_path / "store"), random.Random(seed)
    store.writer = LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=16384)
    for _ in range(60):
        store.number = draw.randrange(1000)  # some are of transactions, and the times go back
        store.write(draw.randrange(1, 6))
    pass_over(store.root, tmp_path / "passed", tmp_path / "out")
    assert kept(tmp_path / "passed") == of_scan(store.root, tmp_path / "scanned") != {}


@pytest.mark.parametrize("pass_over", [verified, rebuilt])
def test_a_file_that_goes_while_its_map_is_made_has_none(
    pass_over: Pass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*arguments: object, **named: object) -> int:
        raise FileNotFoundError(2, "gone", "a file")

    store = case("medium-493").unpack(tmp_path)
    monkeypatch.setattr(split_zones, "gather", gone)
    pass_over(store, tmp_path / "passed", tmp_path / "out")
    assert not kept(tmp_path / "passed")


def test_a_scan_reads_what_can_match_alone(tmp_path: Path) -> None:
    store = case("exactfit-493").unpack(tmp_path)
    with rocketmq.scan(store, columns=["phy_offset", "store_timestamp", "size"], cache=False) as found:
        first = next(found)
    verified(store, tmp_path / "cache", tmp_path)
    at = first["store_timestamp"][0]
    with rocketmq.scan(store, end=at, columns=["phy_offset"], cache=tmp_path / "cache") as found:
        assert not list(found) and found.bytes_read == 0 and found.files_read > 1


@pytest.mark.parametrize("pass_over", [verified, rebuilt])
def test_of_a_damaged_file_none_is_kept(pass_over: Pass, tmp_path: Path) -> None:
    store = case("exactfit-493").unpack(tmp_path)
    log = sorted((store / "commitlog").iterdir())[1]
    with open(log, "r+b") as file:
        file.seek(4)
        file.write(bytes(4))
    pass_over(store, tmp_path / "passed", tmp_path / "out")
    assert identity_of(str(log)).name.hex() not in kept(tmp_path / "passed")
    assert kept(tmp_path / "passed") == of_scan(store, tmp_path / "scanned") != {}


def test_messages_behind_the_end_are_said_by_each_scan(tmp_path: Path) -> None:
    store = case("exactfit-493").unpack(tmp_path)
    with rocketmq.scan(store, columns=["phy_offset"], cache=False) as found:
        places = [at for batch in found for at in batch["phy_offset"].tolist()]
    log = sorted((store / "commitlog").iterdir())[-1]
    inside = [at - int(log.name) for at in places if at >= int(log.name)]
    with open(log, "r+b") as file:
        file.seek(inside[len(inside) // 2] + 4)
        file.write(bytes(4))
    verified(store, tmp_path / "passed", tmp_path / "out")
    assert identity_of(str(log)).name.hex() not in kept(tmp_path / "passed")


def test_a_cache_in_what_is_read_is_refused(tmp_path: Path) -> None:
    store = case("rolls-493").unpack(tmp_path)
    partition = PartitionCase("410-backwards").closed(tmp_path)
    (tmp_path / "way").symlink_to(store / "commitlog")
    for call in (
        lambda: rocketmq.scan(store, cache=store / "cache"),
        lambda: rocketmq.scan(store, cache=tmp_path / "way" / "cache"),
        lambda: rocketmq.scan(store / "commitlog", cache=store / "commitlog"),
        lambda: rocketmq.verify(store, cache=store / "index" / "cache"),
        lambda: rocketmq.rebuild(store, tmp_path / "out", cache=store),
        lambda: kafka.scan(partition, cache=partition / "cache"),
        lambda: kafka.scan(next(partition.glob("*.log")), cache=partition),
        lambda: kafka.verify(partition, cache=partition / "cache"),
        lambda: kafka.verify(next(partition.glob("*.log")), deep=True, cache=partition),
        lambda: kafka.verify([tmp_path / "other", partition.parent], cache=partition.parent / "cache"),
        lambda: kafka.rebuild([partition], tmp_path / "out", cache=partition),
    ):
        with pytest.raises(ValueError, match=r"^cache: expected a directory outside of .*, where a broker reads, got"):
            call()
