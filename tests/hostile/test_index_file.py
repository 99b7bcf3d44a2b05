"""Index files whose bytes nobody should trust: the answer is the twin's, or an `MQIndexError`."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.errors import GeometryError, MQIndexError, TruncatedFileError
from mqindex.rocketmq import IndexFile, IndexService
from tests.reference.index_file import MAX_TIME
from tests.reference.index_file import IndexFile as TwinFile
from tests.support.nightly import some

pytestmark = pytest.mark.filterwarnings("ignore:begin .* is after end:UserWarning")  # the broker was asked so too

SLOTS, ENTRIES = 7, 40
SIZE = 40 + 4 * SLOTS + 20 * ENTRIES
KEYS = [f"T#k{number}" for number in range(12)] + ["T#absent", "", "Aa", "BB", "polygenelubricants"]
WINDOWS = [(0, MAX_TIME), (0, 0), (1_700_000_010_000, 1_700_000_021_000), (-(1 << 63), MAX_TIME), (MAX_TIME, 0)]
FIELDS = {"begin_timestamp": 0, "end_timestamp": 8, "begin_phy_offset": 16, "end_phy_offset": 24, "hash_slot_count": 32,
          "index_count": 36}  # fmt: skip
LONGS = [0, -1, 1, 999, 1_700_000_000_000, (1 << 63) - 1, -(1 << 63), 1 << 31, 1 << 62]
INTS = [0, -1, 1, 2, SLOTS, 31, 32, ENTRIES - 1, ENTRIES, ENTRIES + 1, 1 << 20, (1 << 31) - 1, -(1 << 31)]
Bound = Callable[[float], None]


def sound(entries: int = 30) -> bytes:
    file = TwinFile(SLOTS, ENTRIES, 77, 1_699_999_990_000)
    for number in range(entries):
        file.put(f"T#k{number % 12}", 100 * number, 1_700_000_000_000 + number * 1500)
    return bytes(file.data)


def answers(index: IndexFile) -> list[list[int]]:
    return [
        found
        for begin, end in WINDOWS
        for most in (64, 3)
        for found in index.select_phy_offsets(KEYS, max_num=most, begin=begin, end=end).to_pylist()
    ]


def check_against_twin(path: Path, data: bytes) -> None:
    """Reading, then putting, does what the broker would do with these bytes."""
    path.write_bytes(data)
    twin = TwinFile.load(data, SLOTS, ENTRIES)
    expected = [twin.select(key, most, begin, end) for begin, end in WINDOWS for most in (64, 3) for key in KEYS]
    with IndexFile.open(path, hash_slot_num=SLOTS, index_num=ENTRIES) as index:
        assert answers(index) == expected
        single = [index.select_phy_offset(key, max_num=3, begin=WINDOWS[2][0], end=WINDOWS[2][1]) for key in KEYS]
        assert [found.tolist() for found in single] == [twin.select(key, 3, *WINDOWS[2]) for key in KEYS]
        for begin, end in WINDOWS:
            assert index.is_time_matched(begin, end) == twin.is_time_matched(begin, end)
        assert index.is_write_full() == twin.full
        columns = index.entries()
        names = ("key_hash", "phy_offset", "time_diff", "prev_index")
        assert list(zip(*(columns[name].tolist() for name in names), strict=True)) == list(twin.entries())
        assert index.slots().tolist() == [twin.slot(number) for number in range(SLOTS)]
    assert path.read_bytes() == data
    with IndexFile.open(path, hash_slot_num=SLOTS, index_num=ENTRIES, writable=True) as index:
        puts = [(key, 9000 + number, 1_700_000_100_000 + number) for number, key in enumerate(KEYS)]
        stored = sum(twin.put(*put) for put in puts)
        assert index.put_keys(*map(list, zip(*puts, strict=True))) == stored
    assert path.read_bytes() == bytes(twin.data)


@pytest.mark.parametrize("field", FIELDS)
def test_header_field_of_any_value_is_read_as_the_broker_reads_it(
    field: str, tmp_path: Path, time_bound: Bound
) -> None:
    time_bound(60)
    code, values = (">q", LONGS) if FIELDS[field] < 32 else (">i", INTS)
    for value in values:
        data = bytearray(sound())
        struct.pack_into(code, data, FIELDS[field], value)
        check_against_twin(tmp_path / "index", bytes(data))


def test_every_slot_and_link_may_lead_anywhere(tmp_path: Path, time_bound: Bound) -> None:
    time_bound(120)
    places = [40 + 4 * slot for slot in range(SLOTS)] + [40 + 4 * SLOTS + 20 * entry + 16 for entry in range(31)]
    for place in places:
        for value in INTS:
            data = bytearray(sound())
            struct.pack_into(">i", data, place, value)
            check_against_twin(tmp_path / "index", bytes(data))


@pytest.mark.parametrize("length", [1, 2, 3, 29])
def test_links_that_form_a_circle_end_the_walk(length: int, tmp_path: Path, time_bound: Bound) -> None:
    time_bound(20)
    data = bytearray(sound())
    for slot in range(SLOTS):
        struct.pack_into(">i", data, 40 + 4 * slot, 1)
    for entry in range(1, length + 1):
        struct.pack_into(">i", data, 40 + 4 * SLOTS + 20 * entry + 16, entry % length + 1)
    check_against_twin(tmp_path / "index", bytes(data))


@pytest.mark.parametrize("which", some(range(4), lambda which: which < 2))
def test_random_mutations_are_read_as_the_broker_reads_them(
    which: int, tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(120)
    for _ in range(300):
        check_against_twin(tmp_path / "index", mutated(sound(rng.choice([0, 1, 20, 39])), rng))


@pytest.mark.parametrize("fill", ["zeros", "ones", "random"])
def test_bytes_of_no_index_are_read_as_the_broker_reads_them(fill: str, tmp_path: Path, rng: random.Random) -> None:
    data = {"zeros": bytes(SIZE), "ones": b"\xff" * SIZE, "random": rng.randbytes(SIZE)}[fill]
    check_against_twin(tmp_path / "index", data)


def test_every_other_length_is_refused(tmp_path: Path, time_bound: Bound) -> None:
    time_bound(60)
    data, path = sound(), tmp_path / "index"
    for length in [*range(SIZE), SIZE + 1, SIZE + 20, 2 * SIZE]:
        path.write_bytes((data * 2)[:length])
        with pytest.raises(TruncatedFileError if length == 0 else GeometryError):
            IndexFile.open(path, hash_slot_num=SLOTS, index_num=ENTRIES)


def test_every_truncation_without_a_geometry_is_refused_or_another_geometry(tmp_path: Path, time_bound: Bound) -> None:
    time_bound(60)
    data, path = sound(), tmp_path / "index"
    for length in range(SIZE):
        path.write_bytes(data[:length])
        try:
            index = IndexFile.open(path)
        except MQIndexError:
            continue
        with index:
            assert 40 + 4 * index.hash_slot_num + 20 * index.index_num == length
            answers(index)


def test_random_mutations_without_a_geometry_end_in_a_geometry_or_an_error(
    tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(120)
    path, opened = tmp_path / "index", 0
    for _ in range(500):
        path.write_bytes(mutated(sound(), rng))
        try:
            index = IndexFile.open(path)
        except MQIndexError:
            continue
        with index:
            opened += 1
            answers(index)
    assert 0 < opened < 500


def test_geometry_of_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(sound())
    for slots, entries in ((SLOTS + 1, ENTRIES), (SLOTS, ENTRIES - 1), (5_000_000, 20_000_000), (1, 1)):
        with pytest.raises(GeometryError):
            IndexFile.open(path, hash_slot_num=slots, index_num=entries)


@pytest.mark.parametrize(("slots", "entries"), [(0, 10), (-1, 10), (10, 0), (10, -5)])
def test_geometry_of_nothing_is_a_wrong_argument(slots: int, entries: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        IndexFile.create(tmp_path / "index", hash_slot_num=slots, index_num=entries)
    assert list(tmp_path.iterdir()) == []


def test_seeds_below_1_are_no_seeds(tmp_path: Path) -> None:
    path = tmp_path / "index"
    IndexFile.create(path, hash_slot_num=SLOTS, index_num=ENTRIES, end_phy_offset=-5, end_timestamp=-7).close()
    assert path.read_bytes() == bytes(SIZE)


def test_file_longer_than_the_broker_can_map_is_refused(tmp_path: Path, time_bound: Bound) -> None:
    time_bound(60)
    path = tmp_path / "index"
    with pytest.raises(GeometryError):
        IndexFile.create(path, hash_slot_num=5_000_000, index_num=106_374_181, sparse=True)
    assert list(tmp_path.iterdir()) == []
    with path.open("wb") as file:  # right in all but its length: one entry, of hash 3
        file.write(struct.pack(">qqqqii", 1, 1, 7, 7, 1, 2))
        file.seek(40 + 4 * 3)
        file.write(struct.pack(">i", 1))
        file.seek(40 + 4 * 5_000_000 + 20)
        file.write(struct.pack(">iqii", 3, 7, 0, 0))
        file.truncate(40 + 4 * 5_000_000 + 20 * 110_000_000)
    with pytest.raises(MQIndexError):
        IndexFile.open(path)
    with pytest.raises(GeometryError):
        IndexFile.open(path, hash_slot_num=5_000_000, index_num=110_000_000)


def test_directory_or_nothing_in_place_of_a_file_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("directory", "loop", "nothing", "no/such/place"):
        with pytest.raises(OSError):
            IndexFile.open(tmp_path / name, hash_slot_num=SLOTS, index_num=ENTRIES)


def test_service_over_strangers_skips_them_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "20231114221320000").write_bytes(sound())
    (tmp_path / "notes.txt").write_bytes(b"?")
    (tmp_path / "-5").write_bytes(b"?")
    with (
        pytest.warns(UserWarning),
        IndexService.open(tmp_path, hash_slot_num=SLOTS, index_num=ENTRIES) as service,
    ):
        assert len(service.files) == 1


def test_service_without_the_empty_file_that_a_broker_is_about_to_fill(tmp_path: Path) -> None:
    (tmp_path / "20231114221320000").write_bytes(sound())
    (tmp_path / "20231114221320001").touch()
    with pytest.warns(UserWarning, match="empty"), IndexService.open(tmp_path) as service:
        assert [file.path for file in service.files] == [str(tmp_path / "20231114221320000")]
    with pytest.raises(MQIndexError, match="empty"):
        IndexService.open(tmp_path, writable=True)


@pytest.mark.parametrize("other", ["short", "directory", "random"])
def test_service_over_a_bad_file_is_one_clear_error_or_the_broker_s_answer(
    other: str, tmp_path: Path, rng: random.Random
) -> None:
    (tmp_path / "20231114221320000").write_bytes(sound())
    stranger = tmp_path / "20231114221320001"
    if other == "directory":
        stranger.mkdir()
    else:
        stranger.write_bytes({"short": sound()[:-1], "random": rng.randbytes(SIZE)}[other])
    for slots, entries in ((None, None), (SLOTS, ENTRIES)):
        try:
            service = IndexService.open(tmp_path, hash_slot_num=slots, index_num=entries)
        except (MQIndexError, IsADirectoryError):
            assert other != "random"
            continue
        with service:
            service.query_offsets(None, KEYS)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to four blows: a bit, a number with an extreme value, a stretch of zeros, of noise, or moved."""
    spoilt = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(5)
        at = rng.randrange(len(spoilt) - 8)
        if kind == 0:
            spoilt[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            at -= at % 4
            struct.pack_into(">i", spoilt, at, rng.choice(INTS))
        elif kind == 2:
            spoilt[at : at + rng.randrange(1, 60)] = b""
            spoilt += bytes(len(data) - len(spoilt))
        elif kind == 3:
            length = min(rng.randrange(1, 40), len(spoilt) - at)
            spoilt[at : at + length] = rng.randbytes(length)
        else:
            length = min(rng.randrange(1, 100), len(spoilt) - at)
            spoilt[at : at + length] = bytes(length)
    return bytes(spoilt)
