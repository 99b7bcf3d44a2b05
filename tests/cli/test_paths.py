"""What is said of a path that a command cannot take, and of one that cannot be looked at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqindex.rocketmq import ConsumeQueueTable
from tests.cli.conftest import Shell, Store, ordinary_user


@pytest.fixture(autouse=True)
def _place_for_output(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `--out x` goes."""
    monkeypatch.chdir(tmp_path_factory.mktemp("output"))


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("info", []),
        ("verify", []),
        ("dump", []),
        ("query", ["--topic", "T", "k"]),
        ("repair", []),
        ("rebuild", ["--out", "x"]),
        ("follow", ["--out", "x"]),
    ],
)
def test_a_path_behind_a_closed_directory_may_be_there(
    shell: Shell, public: Store, command: str, flags: list[str]
) -> None:
    """It was told as missing."""
    assert shell(command, "--help").status == 0  # imported as root
    closed = public.root.parent
    closed.chmod(0)
    try:
        with ordinary_user():
            done = shell(command, public.root, *flags)
    finally:
        closed.chmod(0o755)
    assert (done.status, done.err) == (2, f"mqindex: {public.root}: Permission denied\n")


def test_only_what_the_broker_of_the_path_has_is_expected(shell: Shell, basic: Store) -> None:
    assert shell("verify", basic.root / "commitlog").err == (
        f"mqindex: {basic.root}/commitlog is a commit-log directory: expected a store's root directory, "
        f"a directory of index files or an index file; did you mean {basic.root}?\n"
    )


@pytest.mark.parametrize("name", ["commitlog/00000000000000000000", "consumequeue/AaTopic/0/00000000000000000000"])
def test_a_store_is_found_from_far_below(shell: Shell, basic: Store, name: str) -> None:
    assert shell("verify", basic.root / name).err.endswith(f"; did you mean {basic.root}?\n")


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("info", "a store's root directory, a Kafka log dir"),
        ("dump", "an index file, a Kafka log dir"),
    ],
)
def test_many_kinds_are_not_one_sentence(shell: Shell, stranger: Path, command: str, first: str) -> None:
    assert shell(command, stranger).err == (
        f"mqindex: {stranger} is nothing that mqindex knows: expected {first}, or another kind of those that "
        f"`mqindex {command} --help` lists; --kind says what it is\n"
    )


def test_an_empty_directory_may_be_a_volume_that_is_not_mounted(shell: Shell, tmp_path: Path) -> None:
    for words in (["verify"], ["info"], ["repair"], ["dump"]):
        done = shell(*words, tmp_path)
        said = f"mqindex: {tmp_path} is an empty directory; is its volume mounted?\n"
        assert (done.status, done.out, done.err) == (2, "", said)


def test_the_directory_above_a_store_leads_to_it(shell: Shell, basic: Store, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "store").symlink_to(basic.root)
    done = shell("verify", tmp_path / "data")
    assert (done.status, done.err) == (
        2, f"mqindex: {tmp_path}/data is nothing that mqindex knows; did you mean {tmp_path}/data/store?\n"
    )  # fmt: skip


def test_optimize_does_not_name_an_option_that_it_has_not(shell: Shell, stranger: Path) -> None:
    assert shell("optimize", stranger, "--out", stranger / "out").err == (
        f"mqindex: {stranger} is nothing that mqindex knows: expected a store's root directory, "
        "a directory of index files or an index file\n"
    )


def test_follow_does_not_name_an_option_that_it_has_not(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = shell("follow", tmp_path / "file", "--out", tmp_path / "out")
    assert done.err == f"mqindex: {tmp_path}/file is nothing that mqindex knows: expected a store's root directory\n"


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="this system has no file that opens and is not read")
def test_a_read_that_fails_says_of_what(shell: Shell) -> None:
    assert shell("info", "/proc/self/mem").err == "mqindex: /proc/self/mem: Input/output error\n"


@pytest.mark.parametrize(
    ("command", "flags"),
    [("verify", []), ("repair", []), ("rebuild", ["--out", "x"]), ("follow", ["--out", "x"])],
)
def test_a_store_without_a_commit_log(shell: Shell, tmp_path: Path, command: str, flags: list[str]) -> None:
    (tmp_path / "checkpoint").write_bytes(bytes(4096))
    done = shell(command, tmp_path, *flags)
    assert (done.status, done.err) == (
        2,
        f"mqindex: no commit log: {tmp_path}/commitlog: expected its directory; --commitlog says where it is\n",
    )


@pytest.mark.parametrize(
    ("command", "flags"),
    [("verify", ["--index-num", "5"]), ("repair", ["--kind", "store"]), ("follow", ["--out", "x"])],
)
def test_a_directory_of_something_else_is_no_store(
    shell: Shell, stranger: Path, command: str, flags: list[str]
) -> None:
    """Every directory that nobody knows was taken for a store: "no commit log"."""
    done = shell(command, stranger, *flags)
    assert (done.status, done.err) == (
        2,
        f"mqindex: not a store: {stranger}: expected a directory with commitlog/, consumequeue/, index/, checkpoint, "
        "got none of it; if the log is elsewhere, give commitlog= (--commitlog)\n",
    )


@pytest.mark.parametrize(
    ("command", "flags"),
    [("report", ["--out", "x"]), ("verify", []), ("repair", []), ("rebuild", ["--out", "x"])],
)
def test_a_directory_of_something_else_is_of_neither_broker(
    shell: Shell, stranger: Path, command: str, flags: list[str]
) -> None:
    """Only what a RocketMQ store has was named."""
    done = shell(command, stranger, *flags)
    assert (done.status, done.out) == (2, "")
    assert f"{stranger} is nothing that mqindex knows: expected a store's root directory" in done.err
    assert "a Kafka partition's directory" in done.err
    assert done.err.endswith("; --kind says what it is\n")


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_a_commit_log_elsewhere_is_taken(shell: Shell, basic: Store, command: str) -> None:
    elsewhere = basic.root.parent / "log"
    os.rename(basic.root / "commitlog", elsewhere)
    assert shell(command, basic.root, "--commitlog", elsewhere).status == 0


@pytest.mark.parametrize("place", ["", "index", "consumequeue"])
@pytest.mark.parametrize(
    ("command", "flags"),
    [("verify", []), ("repair", []), ("repair", ["--dry-run"]), ("rebuild", ["--out", "x"])],
)
def test_a_directory_without_log_files_is_no_commit_log(
    shell: Shell, basic: Store, command: str, flags: list[str], place: str
) -> None:
    """`--commitlog STORE` was taken for an empty log: repair moved every index file and queue to the backup."""
    before, wrong = basic.contents(), basic.root / place
    done = shell(command, basic.root, *flags, "--commitlog", wrong)
    assert (done.status, done.out) == (2, "")
    assert f"no file of a commit log: {str(wrong).rstrip('/')}: expected names of 20 digits" in done.err
    assert basic.contents() == before


@pytest.mark.parametrize("name", ["lost+found", ".snapshot"])
def test_what_a_file_system_puts_into_an_empty_log_is_no_stranger(shell: Shell, tmp_path: Path, name: str) -> None:
    (tmp_path / "commitlog" / name).mkdir(parents=True)
    assert shell("verify", tmp_path, "--broker-version", "5.1.0").status == 0
    done = shell("verify", tmp_path)
    assert (done.status, "stray-log-file" in done.out) == (1, True)  # earlier brokers do not start with it


@pytest.mark.parametrize("kind", ["consumequeue-file", "consumequeue-ext-file", "batchconsumequeue-file"])
def test_a_file_of_a_queue_without_its_name(shell: Shell, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "copy"
    path.write_bytes(bytes(20))
    assert shell("info", path, "--kind", kind).err == (
        f"mqindex: {path} is no part of a log or queue: expected a name of 20 digits, the offset at which it starts\n"
    )


def test_a_part_of_a_store_that_may_not_be_read(shell: Shell, public: Store) -> None:
    assert shell("info", public.root).status == 0  # imported as root
    directory = public.root / "commitlog"
    directory.chmod(0)
    with ordinary_user():
        done = shell("info", public.root)
    assert (done.status, done.err) == (2, f"mqindex: {directory}: Permission denied\n")


@pytest.mark.parametrize("command", ["info", "verify", "query"])
def test_an_index_that_may_not_be_read_is_not_said_to_be_of_no_geometry(
    shell: Shell, public: Store, command: str
) -> None:
    flags = ["--topic", "T", "key"] if command == "query" else []
    shell(command, public.root, *flags)  # imported as root
    for path in public.index_files:
        path.chmod(0)
    with ordinary_user():
        done = shell(command, public.root, *flags)
    assert done.status == 2
    assert done.err.endswith(": Permission denied\n")
    assert "geometry" not in done.err


def test_the_lock_of_a_log_dir_is_not_that_of_a_store(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    assert "free: no broker runs on this log dir\n" in shell("info", tmp_path, "--kind", "log-dir").out


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--offset", "offsets: expected either --offset N or - (offsets from stdin), got both"),
        ("--timestamp", "times: expected either --timestamp TIME or - (times from stdin), got both"),
    ],
)
def test_targets_are_not_called_keys(shell: Shell, tmp_path: Path, flag: str, words: str) -> None:
    assert shell("query", tmp_path, "--kind", "partition", flag, "-", flag, "5").err == f"mqindex: {words}\n"
    assert "expected a" in shell("query", tmp_path, "--kind", "partition", flag, "-", stdin=b"\xff\n").err
    assert "in UTF-8" in shell("query", tmp_path, "--kind", "partition", flag, "-", stdin=b"\xff\n").err


@pytest.mark.parametrize("name", ["", "meta.properties"])
def test_what_is_called_a_partition_and_is_none(shell: Shell, tmp_path: Path, name: str) -> None:
    """It was told that there were not enough values to unpack."""
    (tmp_path / (name or "notes")).touch()
    done = shell("info", tmp_path, "--kind", "partition")
    assert (done.status, done.out) == (2, "")
    assert done.err == (f"mqindex: {tmp_path} is no partition: expected segments, as 00000000000000000000.log\n")


def test_a_topic_may_be_called_as_a_part_of_a_store_is(shell: Shell, basic: Store) -> None:
    """The directory of its queues, and that of all queues, passed for a store's root."""
    queues = basic.root / "consumequeue"
    (topic, *_) = (path for path in queues.iterdir() if (path / "0").is_dir())
    names = ("index", "commitlog", "consumequeue")
    for name in names:
        shutil.copytree(topic, queues / name)
    (listed,) = shell("info", queues, "--json").json
    assert {queue["topic"] for queue in listed["queues"]} >= {*names, topic.name}
    for path in (queues, *(queues / name for name in names)):
        done = shell("dump", path)
        assert (done.status, done.lines[0].split()[:2]) == (0, ["topic", "queue_id"])
    assert shell("info", basic.root).err == ""
    ConsumeQueueTable.open(queues).close()


def test_a_store_may_be_called_as_its_part_is(shell: Shell, basic: Store) -> None:
    def answers(root: Path) -> list[str]:
        topic = sorted(path.name for path in (root / "consumequeue").iterdir() if (path / "0").is_dir())[0]
        lines = (
            ["info", root], ["message", root, "0"], ["dump", root / "commitlog"], ["dump", root / "consumequeue"],
            ["dump", root / "consumequeue" / topic], ["query", root / "index", "--topic", topic, "KEY-1"],
            ["verify", root / "index"], ["verify", root],
        )  # fmt: skip
        done = [shell(*line) for line in lines]
        assert {one.err for one in done} == {""}
        untimed = [[line for line in one.lines if not line.startswith("  checked ")] for one in done]
        return [f"{one.status} {lines}".replace(str(root), "root") for one, lines in zip(done, untimed, strict=True)]

    assert answers(basic.root) == answers(basic.root.rename(basic.root.with_name("consumequeue")))


def test_a_printed_command_is_for_a_path_that_begins_with_a_dash(shell: Shell) -> None:
    """`mqindex repair -d/store` was printed, whose path is taken for options."""
    assert shell("sample", "--", "-d").lines[-1] == "-> `mqindex verify ./-d/store`"
    assert "`mqindex repair ./-d/store` would:" in shell("verify", "--", "-d/store").lines
    for path in ("-d/store", "-d/orders-0"):
        about = shell("info", "--", path)
        assert f"`mqindex verify ./{path}` says what is wrong" in about.out
        assert f"`mqindex info ./{path} --all` lists " in about.out
    hint = "; the path that begins with - is written ./-d/store; see `mqindex verify --help`\n"
    assert shell("verify", "-d/store").err.endswith(hint)
    assert "written" not in shell("verify", "-e/store").err


@pytest.mark.parametrize("name", ["two\nlines", "it's\t$HOME\\", "latin-\udce9"])
def test_the_line_that_undoes_a_repair_can_be_copied_whatever_the_path(shell: Shell, tmp_path: Path, name: str) -> None:
    store = tmp_path / name
    assert shell("sample", store).status == 0
    store = next(path for path in (store, *store.iterdir()) if (path / "commitlog").is_dir())
    done = shell("repair", store, "--broker-version", "4.9.3")
    assert done.status == 0
    line = done.out[done.out.index("mqindex repair ") :].splitlines()[0]
    copied = subprocess.run(
        ["bash", "-c", f'mqindex() {{ "$PYTHON" -m mqindex "$@"; }}; {line}'],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        check=False,
    )
    assert (copied.returncode, copied.stderr) == (0, b"")
