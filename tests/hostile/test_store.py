"""Stores and arguments that are not what was asked for: one clear error, or what is right."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import GeometryError, MQIndexError, OutputExistsError, StoreInUseError
from mqindex.rocketmq import IndexService, rebuild, repair, verify
from tests.hostile.test_index_file import mutated
from tests.support.big_log import write_big_log
from tests.support.crash_at import Runner
from tests.support.small_store import GEOMETRY, OPTIONS, make_small_store
from tests.support.tree import contents, index_bytes, index_paths, scraps

Bound = Callable[[float], None]
ONE = LocalEngine(1)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_small_store(tmp_path / "store")


@pytest.mark.parametrize("which", range(3))
def test_index_spoilt_anywhere_is_reported_and_mended(
    which: int, store: Path, tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(200)
    expected, timed = list(map(live, index_bytes(store))), list(map(used, index_bytes(store)))
    for number in range(60):
        root = shutil.copytree(store, tmp_path / str(number))
        for path in rng.sample(index_paths(root), rng.randint(1, len(expected))):
            path.write_bytes(mutated(path.read_bytes(), rng))
        differs, spoilt = list(map(live, index_bytes(root))) != expected, list(map(used, index_bytes(root))) != timed
        report = verify(root, deep=True, engine=ONE, **OPTIONS)
        assert differs <= (not report.ok) <= spoilt, report.findings
        repair(root, deep=True, engine=ONE, **OPTIONS)
        assert list(map(live, index_bytes(root))) == expected
        shutil.rmtree(root)


@pytest.mark.parametrize("deep", [False, True])
def test_a_negative_offset_is_of_no_expired_message(store: Path, tmp_path: Path, deep: bool) -> None:
    """The first one was taken for expired, where the entries happened to lie in the order of their slots."""
    for number in range(1, 16):
        root = shutil.copytree(store, tmp_path / str(number))
        path = index_paths(root)[0]
        data = bytearray(path.read_bytes())
        data[40 + 4 * GEOMETRY[0] + 20 * number + 4] |= 0x80
        path.write_bytes(data)
        assert not verify(root, deep=deep, engine=ONE, **OPTIONS).ok
        repair(root, deep=deep, engine=ONE, **OPTIONS)
        assert list(map(live, index_bytes(root))) == list(map(live, index_bytes(store)))


def used(data: bytes) -> bytes:
    """Without hashSlotCount and the entries never written."""
    slots, entries = GEOMETRY
    count = int.from_bytes(data[36:40], "big")
    start = 40 + 4 * slots
    masked = bytearray(data[: start + 20 * min(count, entries)].ljust(len(data), b"\0"))
    masked[32:36] = bytes(4)
    masked[start : start + 20] = bytes(20)
    return bytes(masked)


def live(data: bytes) -> bytes:
    """What answers come from: without the first entry's time too, which counts from a file that may be gone."""
    start = 40 + 4 * GEOMETRY[0]
    first_time = slice(start + 20 + 12, start + 20 + 16)
    masked = bytearray(used(data))
    if int.from_bytes(masked[first_time], "big", signed=True) >= 0:
        masked[first_time] = bytes(4)
    return bytes(masked)


def test_index_spoilt_anywhere_is_at_least_no_crash_to_a_quick_look(
    store: Path, tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(200)
    for number in range(60):
        root = shutil.copytree(store, tmp_path / str(number))
        path = rng.choice(index_paths(root))
        path.write_bytes(mutated(path.read_bytes(), rng))
        verify(root, engine=ONE, **OPTIONS)
        try:
            verify(root, engine=ONE)
            repair(root, engine=ONE)
        except MQIndexError:
            assert len(index_paths(root)) > 0
        assert scraps(root) == []
        shutil.rmtree(root)


def test_every_truncation_of_an_index_file_is_reported_and_mended(
    store: Path, tmp_path: Path, time_bound: Bound
) -> None:
    time_bound(200)
    expected = index_bytes(store)
    for length in range(0, len(expected[1]), 11):
        root = shutil.copytree(store, tmp_path / str(length))
        index_paths(root)[1].write_bytes(expected[1][:length])
        assert not verify(root, engine=ONE, **OPTIONS).ok
        assert not verify(root, engine=ONE).ok
        repair(root, engine=ONE)
        assert index_bytes(root) == expected
        shutil.rmtree(root)


def test_second_backup_in_the_same_second_spares_the_first(store: Path) -> None:
    expected, path = index_bytes(store), index_paths(store)[1]
    for spoilt in (b"1", b"2", b"3"):
        path.write_bytes(spoilt * len(expected[1]))
        repair(store, engine=ONE, **OPTIONS)
        assert index_bytes(store) == expected
        path = index_paths(store)[1]
    kept = [file.read_bytes()[:1] for file in store.glob("mqindex-backup-*/index/*")]
    assert sorted(kept) == [b"1", b"2", b"3"]


def test_strangers_among_the_index_files_are_left_alone(store: Path) -> None:
    expected = contents(store / "index")
    (store / "index" / "README").write_bytes(b"mine")
    repair(store, engine=ONE, **OPTIONS)
    assert contents(store / "index") == {**expected, "README": contents(store / "index")["README"]}


def test_directory_with_the_name_of_an_index_file_is_a_clear_error_or_left_alone(store: Path) -> None:
    (store / "index" / "20240101000000000").mkdir()
    expected = index_bytes_of_files(store)
    for call in (verify, repair):
        with contextlib.suppress(MQIndexError, IsADirectoryError):
            call(store, engine=ONE, **OPTIONS)
    assert index_bytes_of_files(store) == expected
    assert scraps(store) == []


@pytest.mark.parametrize("target", ["gone", "99991231235959999"])
def test_a_link_that_leads_nowhere_among_the_index_files_is_told_and_mended(target: str, store: Path) -> None:
    """It ended verify in a bare "No such file or directory"; the second one leads to itself."""
    good = index_bytes(store)
    (store / "index" / "99991231235959999").symlink_to(target)
    for options in (OPTIONS, {}):
        report = verify(store, engine=ONE, **options)
        errors = [one for one in report.findings if one.severity == "error"]
        assert [(one.kind, os.path.basename(one.path or ""), one.got) for one in errors] == [
            ("index-size", "99991231235959999", 0)
        ]
    assert repair(store, engine=ONE, **OPTIONS).backup is not None
    assert index_bytes(store) == good
    assert verify(store, engine=ONE, **OPTIONS).ok


@pytest.mark.parametrize("call", [verify, repair, lambda path, **options: rebuild(path, path / "o", **options)])
def test_path_of_no_store_is_an_error(call: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"?")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "empty").mkdir()
    before = contents(tmp_path / "empty")
    for name in ("nothing", "file", "loop", "empty"):
        with pytest.raises((MQIndexError, OSError)):
            call(tmp_path / name, engine=ONE)
    assert contents(tmp_path / "empty") == before
    assert scraps(tmp_path) == []


def test_output_that_exists_is_not_touched(store: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_bytes(b"mine")
    with pytest.raises(OutputExistsError):
        rebuild(store, tmp_path / "out", engine=ONE, **OPTIONS)
    assert (tmp_path / "out" / "mine").read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "store"]


def test_empty_output_directory_is_filled(store: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    rebuild(store, tmp_path / "out", engine=ONE, **OPTIONS)
    assert index_bytes(tmp_path / "out") == index_bytes(store)


@pytest.mark.parametrize("where", ["", "index", "commitlog", "..", "index/20231114221320000"])
def test_output_in_place_of_the_store_is_refused(where: str, store: Path) -> None:
    before = contents(store.parent)
    with pytest.raises((MQIndexError, ValueError, OSError)):
        rebuild(store, store / where, overwrite=True, engine=ONE, **OPTIONS)
    assert contents(store.parent) == before


def test_output_below_a_file_is_an_error(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"?")
    with pytest.raises(OSError):
        rebuild(store, tmp_path / "file" / "out", engine=ONE, **OPTIONS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "store"]


def test_output_that_may_not_be_written_is_an_error() -> None:
    with tempfile.TemporaryDirectory() as directory, Runner() as runner:
        place = Path(directory)
        place.chmod(0o755)
        store = make_small_store(place / "store")
        (place / "closed").mkdir(mode=0o555)
        someone = 65534 if os.geteuid() == 0 else 0  # root may write everywhere
        outcome = runner.run(
            "mqindex.rocketmq:rebuild", str(store), str(place / "closed" / "out"), engine=ONE, uid=someone
        )
        assert isinstance(outcome.error, PermissionError)
        assert list((place / "closed").iterdir()) == []
        outcome = runner.run("mqindex.rocketmq:verify", str(store), engine=ONE, uid=someone, **OPTIONS)
        assert outcome.error is None


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
print("held", flush=True)
sys.stdin.read()
"""


def test_store_that_a_broker_holds_is_read_but_not_written(store: Path, tmp_path: Path) -> None:
    index_paths(store)[-1].unlink()
    before = contents(store)
    command = [sys.executable, "-c", HOLDER, str(store / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreInUseError):
            repair(store, engine=ONE, **OPTIONS)
        assert not verify(store, engine=ONE, **OPTIONS).ok
        rebuild(store, tmp_path / "out", engine=ONE, **OPTIONS)
        holder.communicate()
    assert contents(store) == before


def test_geometry_that_nothing_tells_is_an_error_that_names_the_options(store: Path, tmp_path: Path) -> None:
    for path in index_paths(store):
        path.write_bytes(bytes(path.stat().st_size))
    for call in (verify, repair, lambda store, **options: rebuild(store, tmp_path / "out", **options)):
        with pytest.raises(GeometryError) as told:
            call(store, engine=ONE)
        assert "hash_slot_num" in str(told.value)
        assert "index_num" in str(told.value)


@pytest.mark.parametrize(
    "options",
    [
        {"hash_slot_num": 0},
        {"index_num": -1},
        {"hash_slot_num": "many"},
        {"broker_version": "new"},
        {"split_size": 100},
        {"parts": ["nonsense"]},
        {"commitlog": []},
        {"config": {"maxIndexNum": "x"}},
    ],
)
def test_wrong_argument_is_named(options: dict[str, object], store: Path, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError)) as told:
        rebuild(store, tmp_path / "out", engine=ONE, **options)  # type: ignore[arg-type]
    assert any(name in str(told.value) for name in [*options, "maxIndexNum"])
    assert not (tmp_path / "out").exists()


def test_geometry_that_takes_no_entry_is_refused(store: Path, tmp_path: Path) -> None:
    with pytest.raises(GeometryError):
        rebuild(store, tmp_path / "out", engine=ONE, hash_slot_num=5, index_num=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


SHRINKS = """
import sys
from mqindex.errors import TruncatedFileError
from mqindex.rocketmq import CommitLog, IndexFile

def refused(*calls):
    for number, call in enumerate(calls):
        try:
            call()
        except TruncatedFileError:
            continue
        raise SystemExit(f"call {number} gave an answer")

kind, path = sys.argv[1:]
if kind == "index":
    with IndexFile.open(path, hash_slot_num=5_000, index_num=16_000) as index:
        open(path, "r+b").truncate(100)
        refused(
            lambda: index.select_phy_offsets([f"k{i}" for i in range(1000)]),
            index.entries,
            index.slots,
        )
else:
    with CommitLog.open(path) as log:
        batches = log.scan()
        next(batches)
        for file in log.files:
            open(file.path, "r+b").truncate(100)
        refused(
            lambda: list(batches), lambda: list(log.scan()), lambda: log.get_message(0), lambda: log.get_message(70)
        )
"""


def run_shrinking(kind: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SHRINKS, kind, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_index_file_that_shrinks_while_open_ends_in_an_error_not_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "20231114221320000"
    with IndexService.open(tmp_path, hash_slot_num=5_000, index_num=16_000, writable=True) as service:
        service.build_index(None, [f"k{number}" for number in range(10_000)], range(10_000), range(10_000))
        Path(service.files[0].path).rename(path)
    done = run_shrinking("index", path)
    assert done.returncode == 0, done.stderr


def test_log_that_shrinks_while_open_ends_in_an_error_not_a_fault(tmp_path: Path) -> None:
    write_big_log(tmp_path, messages=150_000, body_size=100, mapped_file_size=64 << 20)
    done = run_shrinking("log", tmp_path / "commitlog")
    assert done.returncode == 0, done.stderr


def index_bytes_of_files(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in index_paths(root) if path.is_file()]
