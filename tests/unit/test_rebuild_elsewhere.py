"""Stores and results elsewhere: what is rebuilt there is byte for byte what is rebuilt here."""

from __future__ import annotations

import errno
import importlib
import json
import os
import random
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import BadMagicError, FileStateError, GeometryError, OutputExistsError
from mqindex.files import disk
from mqindex.files.places import remote_file
from mqindex.files.places.place import place_of
from mqindex.files.results import delivery, elsewhere
from mqindex.rocketmq import CommitLog, IndexFile, IndexService, optimize, rebuild, verify
from mqindex.rocketmq.log import frame_windows
from tests.support.elsewhere import WAYS, MemoryStorage, Ways, memory
from tests.support.golden import STORE_CASES, case
from tests.support.log_writer import LogMessage, LogWriter

__all__ = ["memory"]  # a fixture

MANIFEST = "mqindex.json"
rebuilding = importlib.import_module("mqindex.rocketmq.rebuild")  # not the function of that name


@pytest.fixture(autouse=True)
def _memory(memory: Ways) -> None:
    """Every test has an empty one."""


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def said(report: Any) -> list[tuple[str, str, Any, Any, Any]]:
    return sorted((one.kind, str(one.at), one.field, str(one.expected), str(one.got)) for one in report.findings)


def offsets(log: CommitLog, start: int | None) -> list[int]:
    return [at for batch in log.scan(start) for at in batch["phy_offset"].tolist()]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a few hundred bytes: every frame lies across the end of one, sooner or later."""
    monkeypatch.setattr(remote_file, "_BLOCK", 4096)
    monkeypatch.setattr(remote_file.RemoteFile, "step", 4096)
    monkeypatch.setattr(frame_windows, "MARGIN", 64)
    monkeypatch.setattr(frame_windows, "_FIRST", 256)


@pytest.mark.parametrize("name", STORE_CASES)
def test_a_store_elsewhere_gives_what_it_gives_here(name: str, tmp_path: Path) -> None:
    root = case(name).unpack(tmp_path)
    here, there = rebuild(root, tmp_path / "here"), rebuild(WAYS.upload(root), tmp_path / "there")
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")
    assert (there.messages, there.entries, there.units, said(there)) == (
        here.messages, here.entries, here.units, said(here),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["basic-493", "ipv6-batch-ext-493", "rolls-493"])
def test_small_windows_show_the_same(name: str, tmp_path: Path, tiny: None) -> None:
    root = case(name).unpack(tmp_path)
    rebuild(root, tmp_path / "here")
    rebuild(WAYS.upload(root), tmp_path / "there", split_size=5000)
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_log_elsewhere_is_read_as_here(seed: int, tmp_path: Path, tiny: None) -> None:
    rng = random.Random(seed)
    writer = LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=1 << 15)
    for n in range(120):
        writer.write(LogMessage(keys=f"k{n}", body=rng.randbytes(rng.choice([10, 100, 3000, 9000]))))
    for _ in range(6):
        at, size = rng.choice(writer.frames)
        writer.overwrite(at + rng.randrange(size), rng.randbytes(rng.choice([1, 4, 40])))
    url = WAYS.upload(tmp_path / "store")
    here, there = (
        rebuild(store, tmp_path / name, index_num=50, hash_slot_num=20, split_size=4096)
        for store, name in ((tmp_path / "store", "here"), (url, "there"))
    )
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")
    assert said(there) == said(here)


def test_a_frame_larger_than_a_window_is_read_whole(tmp_path: Path, tiny: None) -> None:
    writer = LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=1 << 20)
    for size in (10, 300_000, 10, 70_000, 10):
        writer.write(LogMessage(keys=f"k{size}", body=bytes(size)))
    rebuild(tmp_path / "store", tmp_path / "here", index_num=50, hash_slot_num=20)
    rebuild(WAYS.upload(tmp_path / "store"), tmp_path / "there", index_num=50, hash_slot_num=20, split_size=4096)
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")


@pytest.mark.parametrize("name", STORE_CASES)
def test_a_result_elsewhere_has_the_files_and_their_list(name: str, tmp_path: Path) -> None:
    root = case(name).unpack(tmp_path)
    rebuild(root, tmp_path / "here")
    out = "memory://results/one"
    report = rebuild(WAYS.upload(root), out)
    found, here = WAYS.files(out), files_below(tmp_path / "here")
    listed = json.loads(found.pop(MANIFEST))
    assert found == here
    assert {one["name"]: one["size"] for one in listed["files"]} == {name: len(data) for name, data in here.items()}
    assert (listed["hash_slot_num"], listed["index_num"]) == report.settings["geometry"].value
    assert sorted(report.out_files) == sorted(f"{out}/{name}" for name in here)


def test_look_ups_take_the_geometry_from_the_list(tmp_path: Path) -> None:
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    report = rebuild(root, out)
    rebuild(root, tmp_path / "here")
    with IndexService.open(tmp_path / "here" / "index") as here:
        expected = here.query_offset("TopicTest", "k1")
    WAYS.ranges.clear()
    with IndexService.open(f"{out}/index") as there:
        assert (there.hash_slot_num, there.index_num) == report.settings["geometry"].value
        assert there.query_offset("TopicTest", "k1").index_last_update_phy_offset == expected[2]
        pages = sum(stop - start for path, start, stop in WAYS.ranges if "/index/" in path)
    assert pages <= 2 * 4096 * report.files
    path = next(path for path in report.out_files if "/index/" in path)
    with IndexFile.open(path) as file:
        assert (file.hash_slot_num, file.index_num) == report.settings["geometry"].value
    said = json.loads(WAYS.files(out)[MANIFEST])
    for wrong in ({"hash_slot_num": 7}, {"hash_slot_num": -1}, {"index_num": True}):
        WAYS.put(f"{out}/{MANIFEST}", json.dumps({**said, **wrong}).encode())
        with pytest.raises(GeometryError):
            IndexService.open(f"{out}/index")
    WAYS.put(f"{out}/{MANIFEST}", json.dumps({**said, "index_num": "many"}).encode())
    with IndexService.open(f"{out}/index") as there:  # the entries show it
        assert (there.hash_slot_num, there.index_num) == report.settings["geometry"].value


def test_nothing_is_overwritten_in_an_object_store(tmp_path: Path) -> None:
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    with pytest.raises(OutputExistsError, match="nothing is overwritten in an object store"):
        rebuild(root, out, overwrite=True)
    rebuild(root, out)
    before = WAYS.files(out)
    with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
        rebuild(root, out)
    WAYS.put("memory://results/two/mine", b"a file of others")
    with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
        rebuild(root, "memory://results/two")
    assert WAYS.files(out) == before


def test_what_a_killed_run_left_is_refused_and_then_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    slots, entries = rebuild(root, out).settings["geometry"].value
    WAYS.store.delete("results/one/mqindex.json")
    made = json.dumps(sorted(WAYS.files(out)))
    WAYS.put(f"{out}/_mqindex-0123456789ab/owner", b"mqindex\n" + made.encode())
    with pytest.raises(FileStateError, match="its run has not finished"):
        IndexService.open(f"{out}/index")
    with pytest.raises(FileStateError, match="another run may be writing there"):
        rebuild(root, out)
    monkeypatch.setattr(elsewhere, "_QUIET", -1)
    rebuild(root, out)
    assert not [name for name in WAYS.files(out) if name.startswith("_")]
    IndexService.open(f"{out}/index", hash_slot_num=slots, index_num=entries).close()


@pytest.mark.parametrize("said", ['["index/x"]', '["index/", "", "."]', "[1, null]", "{}", "7", "[", ""])
def test_only_what_the_killed_run_made_is_removed(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    WAYS.put(f"{out}/_mqindex-0123456789ab/owner", f"mqindex\n{said}".encode())
    for name in ("x", "y"):
        WAYS.put(f"{out}/index/{name}", b"")
    monkeypatch.setattr(elsewhere, "_QUIET", -1)
    with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
        rebuild(root, out)
    assert "index/y" in WAYS.files(out)
    assert ("index/x" in WAYS.files(out)) == ("index/x" not in said)


def test_a_list_without_its_files_is_refused(tmp_path: Path) -> None:
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    report = rebuild(root, out)
    assert "/index/" in report.out_files[-1]
    WAYS.store.delete(report.out_files[-1].removeprefix("memory://"))
    with pytest.raises(FileStateError, match=r"a file is not as its rebuild left it.*got none"):
        IndexService.open(f"{out}/index")
    WAYS.put(report.out_files[-1], b"of another rebuild")
    with pytest.raises(FileStateError, match=r"a file is not as its rebuild left it.*got 18 bytes"):
        IndexService.open(f"{out}/index")
    WAYS.put(f"{out}/{MANIFEST}", b"{}")
    with pytest.raises(FileStateError, match="its list of files cannot be read"):
        IndexService.open(f"{out}/index")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"schema": "mqindex.result/1", "files": [{"name": 1}]}', "cannot be read"),
        (
            b'{"schema": "mqindex.result/9", "files": 7}',
            "expected mqindex.result/1, got mqindex.result/9; read it with",
        ),
    ],
)
def test_a_list_that_says_nothing_is_refused(text: bytes, said: str, tmp_path: Path) -> None:
    out = "memory://results/one"
    rebuild(case("basic-493").unpack(tmp_path), out)
    WAYS.put(f"{out}/{MANIFEST}", text)
    with pytest.raises(FileStateError, match=re.escape(said)):
        IndexService.open(f"{out}/index")


@pytest.mark.parametrize("what", ["another's list", "no list"])
def test_what_is_made_of_a_result_or_said_of_it_asks_for_its_list(what: str, tmp_path: Path) -> None:
    """A part of an index was optimized as if it were the whole."""
    one, other = "memory://results/one", "memory://results/other"
    rebuild(case("basic-493").unpack(tmp_path / "a"), one)
    rebuild(case("rolls-493").unpack(tmp_path / "b"), other)
    if what == "no list":
        WAYS.store.delete(f"results/one/{MANIFEST}")
        WAYS.put(f"{one}/_mqindex-0123456789ab/owner", b"mqindex\n[]")
    else:
        WAYS.put(f"{one}/{MANIFEST}", WAYS.files(other)[MANIFEST])
    said = "its run has not finished" if what == "no list" else "a file is not as its rebuild left it"
    for ask in (
        lambda: IndexService.open(f"{one}/index"),
        lambda: optimize(one, tmp_path / "new"),
        lambda: verify(one),
    ):
        with pytest.raises(FileStateError, match=said):
            ask()


def test_nothing_is_put_below_a_file(tmp_path: Path) -> None:
    """Whoever looks there finds the file."""
    WAYS.put("memory://results/one", b"mine")
    with pytest.raises(OutputExistsError, match="choose another place"):
        rebuild(case("basic-493").unpack(tmp_path), "memory://results/one")
    assert not WAYS.files("memory://results/one")


@pytest.mark.parametrize("url", ["memory://results/one?sig=SECRET", "memory://results/one#SECRET"])
def test_what_follows_a_name_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    """It was left out without a word: the result was elsewhere."""
    with pytest.raises(ValueError, match=r"memory://results/one: expected a name without . and #") as refused:
        rebuild(case("basic-493").unpack(tmp_path), url)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("url", ["s3://", "s3:///logs", "gs://"])
def test_a_url_without_a_bucket_is_told(url: str) -> None:
    with pytest.raises(ValueError, match=f"^{url}: expected the name of a bucket or a host"):
        place_of(url)


def test_a_failed_run_leaves_nothing_half_visible(tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    url = WAYS.upload(root)
    for forbidden in ("units", "owner", "index/", "consumequeue/", MANIFEST):
        out = f"memory://results/{forbidden.strip('/')}"
        WAYS.forbidden = f"{forbidden}"
        with pytest.raises(PermissionError):
            rebuild(root, out)
        WAYS.forbidden = ""
        assert MANIFEST not in WAYS.files(out)
    assert url


def test_a_log_elsewhere_is_scanned_as_here(tmp_path: Path, tiny: None) -> None:
    root = case("medium-493").unpack(tmp_path)
    url = WAYS.upload(root)
    with CommitLog.open(root / "commitlog") as here, CommitLog.open(place_of(f"{url}/commitlog")) as there:
        for start in (None, here.min_phy_offset + 1, 70_000):
            assert offsets(there, start) == offsets(here, start)
        some = next(iter(here.scan()))["phy_offset"][:20].tolist()
        assert [there.get_message(at) for at in some] == [here.get_message(at) for at in some]


def test_bytes_that_no_window_asked_for_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(random.Random(1).randbytes(1 << 20))
    place = place_of(f"{WAYS.upload(tmp_path)}/file")
    with pytest.raises(AssertionError, match="were used that had not been read"):  # noqa: SIM117
        with remote_file.RemoteFile(place) as file:
            window = bytes(memoryview(file.window(10, 20))[10:20])
            assert window == (tmp_path / "file").read_bytes()[10:20]
            file.map[700_000:700_010]
    with remote_file.RemoteFile(place) as file:
        assert file.read(300_000, 900_000) == (tmp_path / "file").read_bytes()[300_000:900_000]
        file.release(600_000)
        assert file.read(500_000, 900_000) == (tmp_path / "file").read_bytes()[500_000:900_000]


@pytest.mark.parametrize("etags", [True, False])
def test_a_file_that_is_replaced_meanwhile_is_an_error(tmp_path: Path, etags: bool) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    url = f"{WAYS.upload(tmp_path)}/file"
    WAYS.etags = etags
    file = remote_file.RemoteFile(place_of(url))
    file.window(0, 10)
    WAYS.put(url, bytes(1 << 20))
    with pytest.raises(FileStateError, match="the file was replaced while it was read") as raised:
        file.window(700_000, 700_010)
    assert raised.value.path == url


@pytest.mark.parametrize("name", ["the first", "the last"])
def test_a_log_is_read_as_it_was_listed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of it is replaced after the survey by one of the same length, before the tasks open it."""
    url = WAYS.upload(case("medium-493").unpack(tmp_path))
    with CommitLog.open(place_of(f"{url}/commitlog")) as log:
        file = str(log.files[0 if name == "the first" else -1].path)
    survey = rebuilding.survey

    def late(options: Any) -> Any:
        found = survey(options)
        WAYS.put(file, WAYS.files(file.rpartition("/")[0])[file.rpartition("/")[2]])
        return found

    monkeypatch.setattr(rebuilding, "survey", late)
    with pytest.raises(FileStateError, match="the file was replaced while it was read") as raised:
        rebuild(url, "memory://results/one")
    assert raised.value.path == file
    assert not WAYS.files("memory://results/one")


@pytest.mark.parametrize("full", ["create", "mkdtemp"])
def test_a_full_directory_of_this_machine_is_named(full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = case("basic-493").unpack(tmp_path)

    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk if full == "create" else tempfile, full, fails)
    with pytest.raises(OSError, match=r"where files are built before they go to memory://.*TMPDIR= names") as raised:
        rebuild(root, "memory://results/one")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, tempfile.gettempdir())
    assert not WAYS.files("memory://results/one")


@pytest.mark.parametrize("index_num", [50, 100_000])
def test_a_damaged_log_goes_elsewhere_as_here(index_num: int, tmp_path: Path) -> None:
    """Files that were built before the damage was met are not left where they are."""
    writer = LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=1 << 15)
    for n in range(400):
        writer.write(LogMessage(keys=f"k{n}", body=bytes(300)))
    writer.overwrite(writer.frames[200][0] + 4, b"xxxx")
    out = "memory://results/one"
    here, there = (
        rebuild(tmp_path / "store", place, parts=["index"], index_num=index_num, hash_slot_num=20, split_size=4096)
        for place in (tmp_path / "here", out)
    )
    assert {**WAYS.files(out), MANIFEST: b""} == {**files_below(tmp_path / "here"), MANIFEST: b""}
    assert said(there) == said(here)


def test_index_files_are_built_at_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is large is copied by the server."""
    moved: list[str] = []
    monkeypatch.setattr(MemoryStorage, "move", lambda _, path, __: moved.append(path))
    report = rebuild(case("rolls-493").unpack(tmp_path), "memory://results/one", parts=["index"])
    assert report.files > 1
    assert not moved


def test_after_an_interrupt_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    put = elsewhere._put_list

    def interrupted(*_: Any) -> None:
        assert [name for name in WAYS.files(out) if name.startswith("index/")]
        raise KeyboardInterrupt

    monkeypatch.setattr(elsewhere, "_put_list", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rebuild(root, out)
    assert not WAYS.files(out)
    monkeypatch.setattr(elsewhere, "_put_list", put)
    rebuild(root, out)


def test_files_that_are_no_index_files_are_told_once(tmp_path: Path) -> None:
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    slots, entries = rebuild(root, out).settings["geometry"].value
    for n in range(3000):
        WAYS.put(f"{out}/index/stranger-{n}", b"x")
    with pytest.warns(UserWarning, match="skipped, 3.?000 names are not a number") as told:
        IndexService.open(f"{out}/index", hash_slot_num=slots, index_num=entries).close()
    assert len(told) == 1
    WAYS.put("memory://results/two/index/x", b"x")
    for n in range(3000):
        WAYS.put(f"memory://results/two/index/stranger-{n}", b"x")
    with pytest.warns(UserWarning, match="skipped"), pytest.raises(BadMagicError) as refused:
        IndexService.open("memory://results/two/index")
    assert len(str(refused.value)) < 1000


def test_two_runs_that_begin_at_once_never_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one begins, or is done, between the look at the output and the scratch."""
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    sweep = elsewhere._sweep
    for name, error in ((f"_mqindex-{'0' * 12}/owner", FileStateError), (MANIFEST, OutputExistsError)):

        def late(place: Any, name: str = name) -> None:
            sweep(place)
            WAYS.put(f"{out}/{name}", b"of the other run")
            WAYS.put(f"{out}/index/20231114221320000", b"of the other run")

        with monkeypatch.context() as patched, pytest.raises(error):
            patched.setattr(elsewhere, "_sweep", late)
            rebuild(root, out)
        assert sorted(WAYS.files(out)) == sorted([name, "index/20231114221320000"])
        for one in WAYS.files(out):
            WAYS.store.delete(f"results/one/{one}")


def test_a_window_that_could_not_be_filled_is_an_error_and_no_zeros(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(random.Random(1).randbytes(1 << 20))
    with pytest.raises(AssertionError, match="were used that had not been read"):  # noqa: SIM117
        with remote_file.RemoteFile(place_of(f"{WAYS.upload(tmp_path)}/file")) as file:  # type: ignore[arg-type]
            WAYS.failing = OSError("gone")
            with pytest.raises(OSError, match="gone"):
                file.window(300_000, 300_010)
            WAYS.failing = None
            file.map[300_000:300_010]


def test_a_store_with_a_scratch_in_it_is_no_unfinished_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = case("basic-493").unpack(tmp_path)
    out = WAYS.upload(root)
    WAYS.put(f"{out}/_mqindex-0123456789ab/owner", b"mqindex\n")
    before = WAYS.files(out)
    monkeypatch.setattr(elsewhere, "_QUIET", -1)
    with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
        rebuild(root, out)
    assert WAYS.files(out) == before


def test_scratch_elsewhere_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both tries of the removal failed, and nobody said that files stay in the object store."""
    root = case("basic-493").unpack(tmp_path)

    def failing(self: MemoryStorage, path: str, *, whole: bool = True) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(MemoryStorage, "remove", failing)
    with pytest.warns(UserWarning, match="scratch could not be removed") as told:
        assert rebuild(root, "memory://there/out").ok
    (left,) = {name.partition("/")[0] for name in WAYS.files("memory://there/out") if name.startswith("_mqindex-")}
    assert [f"memory://there/out/{left}; nothing in it is needed" in str(one.message) for one in told] == [True]


def test_a_workshop_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in the machine's directory for temporary ones stayed without a word: no later run looks for them there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rmdir = os.rmdir
    with pytest.warns(UserWarning, match="scratch could not be removed") as told:
        with delivery.workshop(place_of("memory://there/out")) as made:
            monkeypatch.setattr(os, "rmdir", lambda path, **options: rmdir(f"{path}/missing", **options))
        monkeypatch.undo()
    assert [str(one.message) for one in told] == [
        f"scratch could not be removed: {made}; nothing in it is needed: remove it"
    ]
