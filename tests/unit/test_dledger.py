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
from mqindex.rocketmq import CommitLog, MessageStore, follow, rebuild, repair, report, verify
from tests.support.dledger import to_dledger
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
    (root / "dledger-n0" / "data" / f"{0:020d}").write_bytes(bytes(4096))  # made in advance, and never written
    assert verify(root, engine=ONE, **OPTIONS).ok


@pytest.mark.parametrize("writable", [False, True])
def test_directory_of_entries_is_no_commit_log(writable: bool, tmp_path: Path) -> None:
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
    data = to_dledger(make_small_store(tmp_path / "store"))
    path = data / f"{0:020d}"
    changed = bytearray(path.read_bytes())
    struct.pack_into(">i", changed, at, number)
    path.write_bytes(changed)
    with CommitLog.open(data) as log:
        assert len(log.files) == 1
