"""A log that DLedger keeps is refused: taken for a commit log, it would cost the store its index and its queues."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.rocketmq import CommitLog, IndexFile, MessageStore, follow, rebuild, repair, report, verify
from tests.support.dledger import to_dledger
from tests.support.log_writer import FIRST_TIME
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents

ONE = LocalEngine(1)
STOPPED = Event()
STOPPED.set()
WHAT = "a DLedger log, which mqindex does not read"
ON = {"enableDLegerCommitLog": "true"}

DOES: dict[str, Callable[..., object]] = {
    "verify": lambda root, **options: verify(root, engine=ONE, **options),
    "report": lambda root, **options: report(root, engine=ONE, **options),
    "repair": lambda root, **options: repair(root, engine=ONE, **options),
    "rebuild": lambda root, **options: rebuild(root, root.parent / "out", engine=ONE, **options),
    "follow": lambda root, **options: follow(root, root.parent / "out", stop=STOPPED, engine=ONE, **options),
    "read": MessageStore.open,
    "write": lambda root, **options: MessageStore.open(root, writable=True, **options),
}
every = pytest.mark.parametrize("does", DOES.values(), ids=DOES)


def refused(root: Path, does: Callable[..., object], *words: str, **options: object) -> None:
    before = contents(root.parent)
    with pytest.raises(FileStateError, match=WHAT) as told:
        does(root, **OPTIONS | options)
    for word in words:
        assert word in str(told.value)
    assert contents(root.parent) == before


@every
def test_entries_beside_a_log_that_is_not_there(does: Callable[..., object], tmp_path: Path) -> None:
    """`verify` said that a volume is not mounted, and that a start would delete the queues."""
    root = make_small_store(tmp_path / "store", unclean=True)
    data = to_dledger(root)
    refused(root, does, str(data), "--broker-conf")
    (root / "commitlog").mkdir()
    refused(root, does, str(data))


@every
@pytest.mark.parametrize("start", [0, 4096])
def test_entries_given_as_the_log(does: Callable[..., object], start: int, tmp_path: Path) -> None:
    """`repair` found 771 bad magic codes in a good log, cut 13 queues and moved two index files."""
    root = make_small_store(tmp_path / "store")
    data = to_dledger(root, start=start)
    refused(root, does, str(data), commitlog=data)
    refused(root, does, str(data), commitlog=data, config={"enableDLegerCommitLog": "false"})


@every
def test_setting_of_the_broker(does: Callable[..., object], tmp_path: Path) -> None:
    """Whatever is there: the log may be elsewhere, or begin as a plain one."""
    root = make_small_store(tmp_path / "store")
    refused(root, does, "enableDLegerCommitLog=true", config=ON)
    shutil.rmtree(root / "commitlog")
    refused(root, does, "enableDLegerCommitLog=true", config=ON)


def test_broker_that_went_over_to_dledger_and_perhaps_back(tmp_path: Path) -> None:
    """Entries beside a plain log are its later part, or were left; a broker.conf without the setting decides it."""
    root = make_small_store(tmp_path / "store")
    to_dledger(root, keep_log=True)
    refused(root, DOES["repair"], "--broker-conf")
    conf = tmp_path / "broker.conf"
    sizes = "mappedFileSizeCommitLog=2048\nmappedFileSizeConsumeQueue=240\n"
    conf.write_text(f"brokerName=broker-a\nmaxHashSlotNum=5\nmaxIndexNum=16\n{sizes}")
    assert verify(root, engine=ONE, config=conf, broker_version="4.9.3").ok
    assert verify(root, engine=ONE, config={"enableDLegerCommitLog": "false"}, **OPTIONS).ok


def _emptied(home: Path) -> None:
    (home / "data" / f"{0:020d}").unlink()


def _zeroed(home: Path) -> None:
    path = home / "data" / f"{0:020d}"
    path.write_bytes(bytes(4) + path.read_bytes()[4:])


def _only_a_term(home: Path) -> None:
    shutil.rmtree(home / "data")
    (home / "currterm").write_text("1")


def _mount_point(home: Path) -> None:
    shutil.rmtree(home)
    home.mkdir()


def _not_mounted(home: Path) -> None:
    shutil.rmtree(home)
    home.symlink_to("/nowhere/dledger-n0")


@every
@pytest.mark.parametrize("keep_log", [True, False], ids=["with-log", "no-log"])
@pytest.mark.parametrize("damage", [_emptied, _zeroed, _only_a_term, _mount_point, _not_mounted])
def test_what_is_left_of_dledger_counts_as_it_does(
    damage: Callable[[Path], None], keep_log: bool, does: Callable[..., object], tmp_path: Path
) -> None:
    """`repair` cut 901 units and moved five index files; `verify` said that a plain broker would delete the queues."""
    root = make_small_store(tmp_path / "store")
    home = to_dledger(root, keep_log=keep_log).parent
    damage(home)
    refused(root, does, str(home), "no entry in its data", "is its volume mounted?", "--broker-conf")


def test_what_is_left_of_dledger_does_not_count_for_a_broker_without_it(tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    _emptied(to_dledger(root, keep_log=True).parent)
    off = {"enableDLegerCommitLog": "false"}
    assert verify(root, engine=ONE, config=off, **OPTIONS).ok
    (root / "dledger-notes").touch()
    shutil.rmtree(root / "dledger-n0")
    assert verify(root, engine=ONE, **OPTIONS).ok, "a file is none of DLedger's"
    shutil.rmtree(root / "commitlog")
    (root / "dledger-n0").mkdir()
    told = {one.kind for one in verify(root, engine=ONE, config=off, **OPTIONS).findings}
    assert {"log-missing", "queues-deleted-at-next-start"} <= told


def test_a_copy_of_the_plain_log_beside_it_is_no_trace_of_dledger(tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    shutil.copytree(root / "commitlog", root / "dledger-backup" / "data")
    assert verify(root, engine=ONE, **OPTIONS).ok


def _unit_after(root: Path, phy_offset: int) -> None:
    path = root / "consumequeue" / "Topic0" / "0" / f"{240:020d}"
    data = bytearray(path.read_bytes())
    struct.pack_into(">qiq", data, 3 * 20, phy_offset, 100, 0)
    path.write_bytes(data)


def _entry_after(root: Path, phy_offset: int) -> None:
    with IndexFile.open(max((root / "index").iterdir()), writable=True, hash_slot_num=5, index_num=16) as index:
        assert index.put_key("Topic0#k1", phy_offset, FIRST_TIME + 60_000)


@pytest.mark.parametrize("add", [_unit_after, _entry_after])
@pytest.mark.parametrize("does", [DOES["verify"], DOES["report"], DOES["repair"], DOES["write"]])
def test_index_and_queues_of_a_log_that_dledger_went_on_with(
    add: Callable[[Path, int], None], does: Callable[..., object], tmp_path: Path
) -> None:
    """`dledger-n0/` was moved out of the store: `repair` took its part of index and queues for dirt, and who opened the
    store to write cut the queues, or left an `abort` behind."""
    root = make_small_store(tmp_path / "store")
    end = 2048 * len(list((root / "commitlog").iterdir()))
    add(root, end + 48)
    refused(root, does, f"phy offset {end + 48}, 48 bytes after the start of a file", "is its volume mounted?")
    off = {"enableDLegerCommitLog": "false"}
    beyond = {"queue-beyond-log", "index-beyond-log"}
    assert beyond & {one.kind for one in verify(root, engine=ONE, config=off, **OPTIONS).findings}
    assert repair(root, engine=ONE, config=off, **OPTIONS).ok


@pytest.mark.parametrize("part", ["index", "consumequeue"])
@pytest.mark.parametrize("does", [DOES["verify"], DOES["report"], DOES["repair"], DOES["rebuild"]])
def test_index_or_queues_of_a_log_that_was_dledgers_from_the_first_message_on(
    does: Callable[..., object], part: str, tmp_path: Path
) -> None:
    """With `dledger-n0/` moved away: `verify` said that a start deletes the queues, which a plain broker's would."""
    root = make_small_store(tmp_path / "store")
    shutil.rmtree(root / "commitlog")
    assert "log-missing" in {one.kind for one in verify(root, engine=ONE, **OPTIONS).findings}
    first = min(path for path in (root / part).rglob("*") if path.is_file())
    at = 0 if part == "consumequeue" else 16  # a unit's phy offset, or begin_phy_offset
    first.write_bytes(first.read_bytes()[:at] + struct.pack(">q", 48) + first.read_bytes()[at + 8 :])
    shutil.rmtree(root / ("index" if part == "consumequeue" else "consumequeue"))
    refused(root, does, "phy offset 48, 48 bytes after the start of a file", "is its volume mounted?")


@pytest.mark.parametrize("add", [_unit_after, _entry_after])
def test_what_lies_after_a_plain_log_is_of_a_plain_log(add: Callable[[Path, int], None], tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    add(root, 2048 * len(list((root / "commitlog").iterdir())))
    found = [one for one in verify(root, engine=ONE, **OPTIONS).findings if one.kind.endswith("-beyond-log")]
    assert len(found) == 1
    assert "if another volume or a DLedger log has the log's later part, bring it back" in str(found[0].hint)


@pytest.mark.parametrize("writable", [False, True])
def test_directory_of_dledger_is_no_commit_log_whatever_its_files_are(writable: bool, tmp_path: Path) -> None:
    data = to_dledger(make_small_store(tmp_path / "store"))
    _zeroed(data.parent)
    with pytest.raises(FileStateError, match=WHAT):
        CommitLog.open(data, writable=writable)


def test_entries_in_a_later_file_than_the_second(tmp_path: Path) -> None:
    data = to_dledger(make_small_store(tmp_path / "store"), start=8192).rename(tmp_path / "log")
    for start in (0, 4096):
        (data / f"{start:020d}").write_bytes(bytes(4096))
    with pytest.raises(FileStateError, match=WHAT):
        CommitLog.open(data)


@pytest.mark.parametrize("writable", [False, True])
def test_directory_of_entries_entries_is_no_commit_log(writable: bool, tmp_path: Path) -> None:
    """A writer would find the log's end at its first byte, and clear what follows."""
    data = to_dledger(make_small_store(tmp_path / "store"))
    before = contents(data)
    with pytest.raises(FileStateError, match=WHAT):
        CommitLog.open(data, writable=writable)
    assert contents(data) == before


@pytest.mark.parametrize(
    ("at", "number"),
    [(0, 0), (0, 4), (0, -1), (4, 47), (4, 0), (28, 1), (44, -1), (44, 0)],
    ids=["magic-0", "magic-4", "magic-minus", "short", "no-size", "another-place", "negative", "no-body"],
)
def test_what_is_no_entry_is_not_taken_for_one(at: int, number: int, tmp_path: Path) -> None:
    """In each field that a look at a file compares; a commit log's first frame has none of them."""
    data = to_dledger(make_small_store(tmp_path / "store")).rename(tmp_path / "log")
    path = data / f"{0:020d}"
    changed = bytearray(path.read_bytes())
    struct.pack_into(">i", changed, at, number)
    path.write_bytes(changed)
    with CommitLog.open(data) as log:
        assert len(log.files) == 1
