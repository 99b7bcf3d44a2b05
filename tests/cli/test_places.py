"""Results go nowhere among a broker's files, and replace none; what is made for them goes with a failure."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.files.results import unpacking
from mqindex.rocketmq.dispatch import follow as following
from tests.cli.conftest import COMMAND, NOBODY, Shell, Store
from tests.crash.test_full_disk import REPOSITORY, mountable
from tests.support.sample_archive import contents
from tests.support.tree import contents as tree_contents


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A directory with another store and a partition."""
    root = tmp_path / "others"
    for name, content in contents().items():
        path = root / name
        path.mkdir(parents=True, exist_ok=True) if content is None else path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content)
    return root


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))}


WITHIN = ("store/commitlog/made", "store/consumequeue/made", "store/consumequeue/LostTopic/0/made", "orders-0/made")


@pytest.mark.parametrize("place", WITHIN)
@pytest.mark.parametrize("command", ["report", "message", "rebuild", "follow", "optimize", "sample"])
def test_a_place_among_a_brokers_files_is_refused(
    shell: Shell, basic: Store, others: Path, command: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "follow", lambda *arguments, **options: pytest.fail("it began"))
    before, out = tree(others), others / place
    first = (
        [out.parent] if command == "sample" else [basic.root, *(["0"] if command == "message" else []), "--out", out]
    )
    done = shell(command, *first)
    assert (done.status, done.out) == (2, "")
    assert "expected a place outside of" in done.err
    assert tree(others) == before


PARTS = ("commitlog", "consumequeue", "index", "config", "timerlog", "rocksdbstore", "dledger-n0", "mqindex-backup-1")


@pytest.mark.parametrize("command", ["rebuild", "optimize"])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_another_store_is_not_moved_away(
    shell: Shell, basic: Store, others: Path, command: str, part: str
) -> None:
    place = others / "store" / part
    place.mkdir(exist_ok=True)
    (place / "kept").touch()
    before = tree(others)
    for out in (place, place / "new"):
        done = shell(command, basic.root, "--out", out, "--force")
        assert (done.status, done.out) == (2, "")
        assert f"{out}: expected a place outside of {place}: it is a part of a store, whose broker reads it" in done.err
    assert tree(others) == before


@pytest.mark.parametrize("out", ["orders-0", "log"])
def test_a_log_is_not_moved_away(shell: Shell, basic: Store, others: Path, out: str) -> None:
    """A partition, or a commit log that is not in its store's root."""
    (others / "store" / "commitlog").rename(others / "log")
    (others / "log" / "lost+found").mkdir()
    before = tree(others)
    for command in ("rebuild", "optimize"):
        done = shell(command, basic.root, "--out", others / out, "--force")
        assert (done.status, f"expected a place outside of {others / out}: it is a" in done.err) == (2, True)
    assert tree(others) == before


@pytest.mark.parametrize("command", ["rebuild", "follow", "optimize", "sample", "report", "message"])
@pytest.mark.parametrize("mark", ["meta.properties", ".lock"])
def test_nothing_goes_into_a_log_dir(
    shell: Shell, basic: Store, others: Path, command: str, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No broker starts where it finds a directory that is no partition."""
    monkeypatch.setattr(following, "follow", lambda *arguments, **options: pytest.fail("it began"))
    shutil.move(others / "store", others.parent)
    (others / mark).touch()
    before, out = tree(others), others / "made"
    first = [others] if command == "sample" else [basic.root, *(["0"] if command == "message" else []), "--out", out]
    done = shell(command, *first)
    assert (done.status, done.out) == (2, "")
    assert f"expected a place outside of {others}: it is a Kafka log dir" in done.err
    assert tree(others) == before


@pytest.mark.parametrize(
    "name",
    ["store/lock", "store/abort", "store/notes", "store/config/topics.json", "meta.properties", ".lock", "alone/lock"],
)
def test_what_a_broker_may_need_is_not_overwritten(shell: Shell, basic: Store, others: Path, name: str) -> None:
    """The file `lock` of a store in use was replaced, and a repair then ran beside the broker."""
    (others / name).parent.mkdir(exist_ok=True)
    (others / name).write_text("kept")
    for command in (["report", basic.root], ["message", basic.root, "0"]):
        done = shell(*command, "--out", others / name, "--force")
        assert (done.status, done.out, (others / name).read_text()) == (2, "", "kept")


def test_parts_that_are_links_are_parts(shell: Shell, basic: Store, others: Path, tmp_path: Path) -> None:
    """The name of another disk's directory does not show what it is."""
    disk, log_dir = tmp_path / "disk", tmp_path / "log-dir"
    disk.mkdir()
    log_dir.mkdir()
    for part, store in (("index", basic.root), ("consumequeue", others / "store")):
        (store / part).rename(disk / f"{part}s")
        (store / part).symlink_to(f"../{'../' if store != basic.root else ''}disk/{part}s")
    (others / "orders-0").rename(disk / "partition")
    (log_dir / "orders-0").symlink_to(disk / "partition")
    (tmp_path / "alias").symlink_to(basic.root / "index")
    before = tree(disk)
    for place in (basic.root / "index" / "99", others / "store" / "consumequeue" / "T", tmp_path / "alias" / "99"):
        for command in (["message", basic.root, "0"], ["report", basic.root], ["rebuild", basic.root]):
            done = shell(*command, "--out", place)
            assert (done.status, "expected a place outside of" in done.err) == (2, True), place
    done = shell("message", basic.root, "0", "--out", log_dir / "orders-0" / f"{9999:020d}.log")
    assert (done.status, "it is a Kafka partition's directory" in done.err) == (2, True)
    assert tree(disk) == before


SPREAD = {"index": "a", "consumequeue/BBTopic/0": "b", "consumequeue/BBTopic": "c", "consumequeue": "d", "config": "e"}


@pytest.fixture
def spread(basic: Store, tmp_path: Path) -> Path:
    """The disk to which parts of a store are links; no name there shows what it is."""
    disk = tmp_path / "disk"
    (disk / "free").mkdir(parents=True)
    for part, name in SPREAD.items():
        (basic.root / part).rename(disk / name)
        (basic.root / part).symlink_to(disk / name)
    return disk


@pytest.mark.parametrize("name", SPREAD.values())
def test_where_a_link_of_the_store_leads_is_no_free_place(shell: Shell, basic: Store, spread: Path, name: str) -> None:
    """Bodies and pages went among the index files, and the queues or the config were moved to a backup."""
    before = tree(spread)
    for command in (["message", basic.root, "0"], ["report", basic.root]):
        done = shell(*command, "--out", spread / name / f"{9999:020d}")
        assert (done.status, "expected a place outside of" in done.err) == (2, True)
    for command in (["rebuild", basic.root], ["optimize", basic.root], ["optimize", basic.root / "index"]):
        for out in (spread / name, spread / name / "new", spread):
            done = shell(*command, "--out", out, "--force")
            assert (done.status, "expected a place of its own" in done.err) == (2, True)
    assert tree(spread) == before


def test_beside_what_a_store_links_to_is_free(shell: Shell, basic: Store, spread: Path) -> None:
    for command in (["message", basic.root, "0"], ["report", basic.root]):
        assert shell(*command, "--out", spread / "free" / command[0]).status == 0
    for command in ("rebuild", "optimize"):
        assert [
            shell(command, basic.root, "--out", spread / command, *force).status for force in ([], ["--force"])
        ] == [0, 0]


def test_where_a_partition_of_the_log_dir_is_a_link_to_is_no_free_place(
    shell: Shell, others: Path, tmp_path: Path
) -> None:
    log_dir, part = tmp_path / "log-dir", tmp_path / "part"
    log_dir.mkdir()
    (others / "orders-0").rename(part)
    for name in ("orders-0", "other-1"):
        (log_dir / name).symlink_to(part)
    (log_dir / "meta.properties").touch()
    before = tree(tmp_path)
    for path in (log_dir, log_dir / "orders-0"):
        done = shell("report", path, "--out", part / "page.html")
        assert (done.status, "expected a place outside of" in done.err) == (2, True)
        done = shell("rebuild", path, "--out", part, "--force")
        assert done.status == 2
    assert tree(tmp_path) == before
    assert shell("report", log_dir, "--out", tmp_path / "page.html").status in (0, 1)
    assert (tmp_path / "page.html").is_file()


@pytest.mark.skipif(not mountable(), reason="no directory may be mounted here; links into a store are tested anyway")
@pytest.mark.parametrize(
    "line",
    [
        ["message", "0", "--out", "mount/body"],
        ["report", "--out", "mount/page"],
        ["rebuild", "--out", "empty"],
        ["optimize", "--out", "empty", "--force"],
        ["message", "0", "--out", "part/99"],
        ["report", "--out", "part/99"],
        ["rebuild", "--out", "part/new"],
        ["follow", "--out", "part/new"],
        ["rebuild", "--out", "mount/commitlog", "--force"],
        ["rebuild", "--out", "mount", "--force"],
        ["optimize", "--out", "mount", "--force"],
        ["follow", "--out", "mount/beside"],
    ],
)
def test_another_mount_of_the_store_is_the_store(basic: Store, tmp_path: Path, line: list[str]) -> None:
    """Its commit log was moved to a backup, under its second name, when it had been read."""
    (tmp_path / "mount").mkdir()
    (tmp_path / "part").mkdir()
    (tmp_path / "empty").mkdir()
    before = basic.contents()
    mount = f"mount --bind {basic.root} mount && mount --bind {basic.root}/index part && mount --bind empty empty"
    call = ["unshare", "-Urm", "sh", "-c", f'{mount} && exec "$@"', "sh", *COMMAND, line[0], basic.root, *line[1:]]
    paths = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        call,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected a place " in done.stderr or "the output is a mount point: " in done.stderr
    assert basic.contents() == before


def test_a_link_that_leads_to_itself_ends(shell: Shell, basic: Store, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop/deeper")
    done = shell("rebuild", basic.root, "--out", tmp_path / "loop" / "out")
    assert (done.status, done.out) == (2, "")


def test_an_earlier_result_is_replaced(shell: Shell, basic: Store, others: Path, tmp_path: Path) -> None:
    """It has the names of a store, or of a partition, but no log. So has one in a store's root."""
    for source, out in ((basic.root, tmp_path / "out"), (others / "orders-0", tmp_path / "built-1")):
        assert shell("rebuild", source, "--out", out).status == 0
        done = shell("rebuild", source, "--out", out, "--force")
        assert (done.status, f"what was at {out} is now {out}.backup-" in done.out) == (0, True)
    inside = others / "store" / "anew"
    assert [shell("rebuild", basic.root, "--out", inside, "--force").status for _ in range(2)] == [0, 0]
    assert shell("optimize", basic.root / "index", "--out", basic.root, "--force").status == 0


def test_what_only_has_such_names_is_nobodys(shell: Shell, basic: Store, others: Path, tmp_path: Path) -> None:
    for place in ("a/index", "b/commitlog", "c/index", "d/consumequeue/src", "e/config", "f", "g"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "c" / "index" / "2024").write_text("mine")
    (tmp_path / "e" / "index").mkdir()
    (tmp_path / "f" / "12345678901234567890").touch()
    (tmp_path / "f" / "deep").mkdir()
    (tmp_path / "g" / ".lock").touch()
    for place in ("a/index", "b/commitlog", "c/index", "d/consumequeue/src", "e/config", "f/deep", "g"):
        done = shell("message", basic.root, "0", "--out", tmp_path / place / "body")
        assert (done.status, (tmp_path / place / "body").exists()) == (0, True), done.err


def test_a_link_leads_there_too(shell: Shell, basic: Store, others: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(others / "store" / "commitlog")
    done = shell("message", basic.root, "0", "--out", tmp_path / "link" / "body")
    assert (done.status, "expected a place outside of" in done.err) == (2, True)


@pytest.mark.parametrize(
    "name", ["store/commitlog/00000000000000000000", "store/checkpoint", "orders-0/00000000000000000000.log"]
)
@pytest.mark.parametrize("command", ["report", "message"])
def test_a_brokers_file_is_not_overwritten(
    shell: Shell, basic: Store, others: Path, tmp_path: Path, command: str, name: str
) -> None:
    target = next(path for path in others.glob(f"{name}*"))
    moved = tmp_path / target.name  # also where no other file shows what it is
    shutil.copy(target, moved)
    for out in (target, moved):
        before = out.read_bytes()
        done = shell(command, basic.root, *(["0"] if command == "message" else []), "--out", out, "--force")
        assert (done.status, out.read_bytes() == before) == (2, True)
        assert "which is not overwritten" in done.err or "expected a place outside of" in done.err


def test_a_copy_of_a_file_makes_no_directory_a_brokers(
    shell: Shell, basic: Store, others: Path, tmp_path: Path
) -> None:
    shutil.copy(basic.index_files[0], tmp_path)
    shutil.copy(next((others / "orders-0").glob("*.log")), tmp_path)
    assert shell("report", basic.root, "--out", tmp_path / "page.html").status == 0
    assert shell("rebuild", basic.root, "--out", tmp_path / "built").status == 0


def test_a_body_does_not_go_into_its_own_store(shell: Shell, basic: Store) -> None:
    for name in ("body", "config/body", "index/body"):
        done = shell("message", basic.root, "0", "--out", basic.root / name, "--force")
        assert (done.status, "where brokers may stumble over it" in done.err) == (2, True)


@pytest.mark.parametrize("command", ["rebuild", "optimize"])
def test_what_is_no_directory_is_not_moved_away(shell: Shell, basic: Store, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    for place in (tmp_path / "file", tmp_path / "link", Path("/dev/null")):
        done = shell(command, basic.root, "--out", place, "--force")
        assert (done.status, done.err.startswith(f"mqindex: the output is no directory: {place}")) == (2, True)
    assert Path("/dev/null").is_char_device()
    assert (tmp_path / "file").read_text() == "mine"


def test_a_store_without_an_index_is_told_what_builds_it(shell: Shell, basic: Store, tmp_path: Path) -> None:
    shutil.rmtree(basic.root / "index")
    done = shell("optimize", basic.root, "--out", tmp_path / "out")
    sentence = "the store has no index; `mqindex repair` builds it"
    assert (done.status, done.err) == (2, f"mqindex: {basic.root / 'index'}: {sentence}\n")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"), KeyboardInterrupt()])
def test_a_sample_that_fails_leaves_no_directory(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(root: str) -> None:
        raise error

    monkeypatch.setattr(unpacking.disk, "sync_tree", fails)
    assert shell("sample", tmp_path / "new" / "deep").status in (2, 128 + signal.SIGINT)
    assert os.listdir(tmp_path) == []
    (tmp_path / "mine").mkdir()
    assert shell("sample", tmp_path / "mine").status in (2, 128 + signal.SIGINT)
    assert os.listdir(tmp_path / "mine") == []


def test_an_interrupted_optimize_says_what_is_there(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqindex import rocketmq

    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rocketmq, "optimize", interrupted)
    said: Callable[[Path], str] = lambda out: shell("optimize", basic.root, "--out", out, "--force").err  # noqa: E731
    assert said(tmp_path / "new") == "mqindex: interrupted; nothing was changed\n"
    assert "every file in" in said(basic.root)


def test_an_empty_path_is_a_variable_that_is_not_set(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    of_paths = (["report", "", "--out", tmp_path / "page"], ["verify", ""], ["info", ""])
    of_options = ([name, basic.root, "--out", ""] for name in ("rebuild", "optimize", "follow", "report"))
    for line in (
        *of_paths, *of_options, ["verify", basic.root, "--commitlog", ""],
        ["repair", basic.root, "--undo", ""], ["repair", "", "--undo"],
    ):  # fmt: skip
        done = shell(*line)
        assert (done.status, "expected a path, got an empty one" in done.err) == (2, True)
    assert os.listdir() == []


@pytest.mark.parametrize("command", ["rebuild", "optimize"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_directory_that_cannot_be_replaced_is_refused_before_the_work(
    shell: Shell, basic: Store, tmp_path: Path, command: str, force: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell stood in a directory that was removed; a link, and what is on another disk, failed after all the work."""
    here, disk = tmp_path / "here", tmp_path / "disk"
    here.mkdir()
    disk.mkdir()
    (tmp_path / "link").symlink_to(disk)
    monkeypatch.chdir(here)
    ismount = os.path.ismount
    monkeypatch.setattr(os.path, "ismount", lambda path: path == str(disk) or ismount(path))
    for out, words in (
        (".", f"the current directory: {here}"), (here, f"the current directory: {here}"),
        (tmp_path / "link", f"a link: {tmp_path}/link"), (disk, f"a mount point: {disk}"),
    ):  # fmt: skip
        done = shell(command, basic.root, "--out", out, *force)
        said = f"mqindex: the output is {words}; name a new directory in it\n"
        assert (done.status, done.out, done.err) == (2, "", said)
    assert (os.listdir(here), os.listdir(disk)) == ([], [])


@pytest.mark.parametrize("kept", [False, True])
def test_a_directory_that_was_prepared_keeps_its_owner_and_mode(
    shell: Shell, basic: Store, tmp_path: Path, kept: bool
) -> None:
    out = tmp_path / "prepared"
    out.mkdir()
    out.chmod(0o2700)
    if os.geteuid() == 0:
        os.chown(out, NOBODY, NOBODY)
    before = out.stat()
    if kept:
        (out / "kept").touch()
    assert shell("rebuild", basic.root, "--out", out, *(["--force"] if kept else [])).status == 0
    assert "index" in os.listdir(out)
    assert (out.stat().st_mode, out.stat().st_uid) == (before.st_mode, before.st_uid)


def test_a_url_is_no_path(shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("s3:")
    for line, instead in (
        (["repair", "s3://a"], "`mqindex rebuild` builds the indexes of a URL anew, or copy it"),
        (["follow", "s3://a", "--out", "b"], "`mqindex rebuild` reads a URL once"),
        (["follow", basic.root, "--out", "s3://a"], "`mqindex rebuild` reads a URL once"),
        (["sample", "s3://a"], "unpack it here, and copy it"),
        (["report", basic.root, "--out", "s3://a"], "choose a place here, and copy it"),
        (["verify", basic.root, "--broker-conf", "s3://a"], "choose a place here, and copy it"),
    ):
        done = shell(*line)
        assert (done.status, "expected a path on this machine, got s3://a; " in done.err) == (2, True)
        assert instead in done.err
    assert os.listdir("s3:") == []
    (tmp_path / "s3:" / "a").mkdir()
    assert "s3://a is an empty directory" in shell("info", "s3://a").err


def test_a_sample_does_not_go_into_a_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = shell("sample", tmp_path / "file")
    assert (done.status, done.err) == (2, f"mqindex: {tmp_path / 'file'}: Not a directory\n")


LINUX = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a system without /proc")


@pytest.mark.parametrize("where", ["no/where/out", "file/out", pytest.param("/proc/out", marks=LINUX)])
@pytest.mark.parametrize(
    "line",
    [
        ("rebuild", "store"),
        ("rebuild", "orders-0"),
        ("optimize", "store/index"),
        ("follow", "store"),
        ("report", "store"),
        ("report", "orders-0"),
        ("sample",),
    ],
    ids=" ".join,
)
def test_a_place_where_nothing_can_be_made_is_named_before_the_work(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...], where: str
) -> None:
    """Errors named the scratch directory, or said "File exists"; a report was made first, and thrown away."""
    monkeypatch.chdir(tmp_path)
    shell("sample", ".")
    (tmp_path / "file").write_text("mine")
    if line == ("sample",) and where == "no/where/out":
        return  # it makes all
    before = tree_contents(tmp_path)
    done = shell(*line, *([where] if line == ("sample",) else ["--out", where]))
    home = os.path.dirname(os.path.join(tmp_path, where))
    reason = {"n": "No such file or directory", "f": "Not a directory", "/": "No such file or directory"}[where[0]]
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"mqindex: {home}: nothing can be made in it ({reason}); choose a directory that is there and may be written\n"
    )
    assert tree_contents(tmp_path) == before


@pytest.mark.parametrize("command", [("verify",), ("info",), ("message", "0"), ("query", "k", "--topic", "T")])
@pytest.mark.parametrize(
    ("conf", "reason"),
    [
        ("nosuch", "No such file or directory"),
        ("store/broker.conf\n", "No such file or directory"),
        ("store", "Is a directory"),
        ("store/lock/x", "Not a directory"),
    ],
)
def test_a_broker_conf_that_is_none_says_what_is_expected(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], conf: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shell("sample", ".")
    (tmp_path / "store" / "lock").write_text("lock")
    done = shell(command[0], "store", *command[1:], "--broker-conf", conf)
    assert (done.status, done.out) == (2, "")
    shown = conf.replace("\n", "\\n")
    assert done.err == f"mqindex: {shown}: {reason}; --broker-conf (config=) is the file that the broker starts with\n"


@pytest.mark.parametrize(
    "command", [("message", "666"), ("follow", "--out", "out"), ("rebuild", "--out", "out"), ("repair",)]
)
def test_a_log_whose_volume_is_not_mounted_is_no_empty_log(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A message "was not there", and a follower kept an index of nothing."""
    monkeypatch.chdir(tmp_path)
    shell("sample", ".")
    (tmp_path / "volume").mkdir()
    (tmp_path / "broker.conf").write_text(
        "maxHashSlotNum=500\nmaxIndexNum=5000\nmappedFileSizeConsumeQueue=1000\nstorePathCommitLog=volume\n"
    )
    before = tree_contents(tmp_path)
    done = shell(command[0], "store", *command[1:], "--broker-conf", "broker.conf")
    assert (done.status, done.out) == (2, "")
    assert (
        f"the commit log is missing: {tmp_path / 'volume'}: expected the commit log, got no message in it" in done.err
    )
    assert "is its volume mounted?" in done.err
    assert tree_contents(tmp_path) == before


def test_info_sees_that_the_log_is_not_there(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verdict was "nothing wrong is seen"."""
    monkeypatch.chdir(tmp_path)
    shell("sample", ".")
    (tmp_path / "volume").mkdir()
    said = shell("info", "store", "--commitlog", "volume").out
    assert "its start would       delete consumequeue\n" in said and "commitlog     0 bytes in 0 files\n" in said
