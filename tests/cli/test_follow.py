"""`mqindex follow`."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqindex.cli import trouble
from mqindex.cli.commands.follow import _Stop
from tests.cli.conftest import Shell
from tests.cli.test_terminal import plain
from tests.support.growing_store import GrowingStore
from tests.support.tree import contents, index_bytes, queue_bytes

GEOMETRY = ["--hash-slot-num", "5", "--index-num", "16"]
UNHINDERED = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever started the tests may ignore them
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
from mqindex.cli import main
sys.exit(main())
"""


@pytest.fixture
def store(tmp_path: Path) -> GrowingStore:
    grown = GrowingStore(tmp_path / "store")
    grown.write(10)
    return grown


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text("mappedFileSizeConsumeQueue=200\n")
    return path


@contextmanager
def following(store: GrowingStore, out: Path, conf: Path, *, as_json: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A follower in a process of its own, of which its first JSON lines say that it has caught up."""
    arguments = ["follow", str(store.root), "--out", str(out), "--broker-conf", str(conf), *GEOMETRY]
    arguments += ["--json"] if as_json else []
    running = subprocess.Popen(
        [sys.executable, "-c", UNHINDERED, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with running:
        try:
            yield running
        finally:
            running.kill()


def wait_for(running: subprocess.Popen[str], phy_offset: int) -> None:
    assert running.stdout is not None
    for line in running.stdout:
        if json.loads(line)["phy_offset"] == phy_offset:
            return
    raise AssertionError("the follower ended")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly_and_the_next_run_goes_on(
    store: GrowingStore, conf: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    before = contents(store.root)
    for count in (0, 8, 20):
        store.write(count)
        with following(store, out, conf) as running:
            wait_for(running, store.writer.position)
            running.send_signal(number)
            said, noted = running.communicate(timeout=300)
        assert running.returncode == 0, noted
        last = json.loads(said.splitlines()[-1])
        assert (last["schema"], last["event"]) == ("mqindex.follow/1", "stopped")
        assert (last["phy_offset"], last["messages"]) == (store.writer.position, count or 10)
        assert (last["lag_bytes"], last["repairs"]) == (0, 0)
        assert not (out / "abort").exists()
    index, queues = store.expected(tmp_path / "rebuilt")
    assert (index_bytes(out), queue_bytes(out)) == (index, queues)
    assert before.keys() <= contents(store.root).keys()


def test_killed_it_repairs_and_goes_on(store: GrowingStore, conf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with following(store, out, conf) as running:
        wait_for(running, store.writer.position)
        running.kill()
        running.wait(300)
    assert (out / "abort").exists()
    store.write(30)
    with following(store, out, conf) as running:
        wait_for(running, store.writer.position)
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=300)
    assert running.returncode == 0
    assert json.loads(said.splitlines()[-1])["repairs"] == 1
    assert (index_bytes(out), queue_bytes(out)) == store.expected(tmp_path / "rebuilt")


def test_what_is_dispatched_is_found_meanwhile(store: GrowingStore, conf: Path, shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with following(store, out, conf) as running:
        wait_for(running, store.writer.position)
        n = store.number
        (at,) = store.write(1)
        deadline = time.monotonic() + 120
        key = f"C0A8010A1F902B193F2D{n:012X}" if n % 5 else f"k{n}"
        while time.monotonic() < deadline:
            done = shell("query", out, "--topic", f"Topic{n % 2}", key, "--json", *GEOMETRY)
            if done.status == 0:
                break
        assert [found["phy_offsets"] for found in done.json] == [[at]]
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=300)
    assert running.returncode == 0


def test_a_second_follower_is_refused(store: GrowingStore, conf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with following(store, out, conf) as running:
        wait_for(running, store.writer.position)
        with following(store, out, conf) as second:
            said, noted = second.communicate(timeout=300)
        assert (second.returncode, said) == (2, "")
        assert noted == (f"mqindex: another follower, or a broker, has this directory: {out}; choose another place\n")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=300)
    assert running.returncode == 0


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("store/beside", "expected a place of its own"),
        ("store", "expected a place of its own"),
        ("store/commitlog/x", "expected a place outside of"),
        ("", "expected a place of its own"),
        ("full", "holds something else"),
        ("nowhere/out", "No such file or directory"),
    ],
)
def test_a_place_that_is_not_free_is_refused(
    store: GrowingStore, shell: Shell, tmp_path: Path, out: str, words: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("mine")
    before = contents(tmp_path)
    done = shell("follow", store.root, "--out", tmp_path / out, *GEOMETRY)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert contents(tmp_path) == before


def test_other_settings_than_those_of_the_first_run_are_refused(
    store: GrowingStore, conf: Path, shell: Shell, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with following(store, out, conf) as running:
        wait_for(running, store.writer.position)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=300)
    before = contents(out)
    done = shell("follow", store.root, "--out", out, "--index-num", "17")
    assert done.status == 2
    assert f"maxIndexNum: {out} was made with 16, got 17" in done.err
    other = GrowingStore(tmp_path / "other")
    other.write(1)
    done = shell("follow", other.root, "--out", out)
    assert done.status == 2
    assert "choose another place" in done.err
    assert contents(out) == before


def test_for_people_there_is_a_closing_line_and_nothing_else_in_a_pipe(
    store: GrowingStore, conf: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    expected = store.expected(tmp_path / "rebuilt")
    with following(store, out, conf, as_json=False) as running:
        deadline = time.monotonic() + 120
        while (index_bytes(out), queue_bytes(out)) != expected and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        said, noted = running.communicate(timeout=300)
    assert running.returncode == 0, noted
    (line,) = said.splitlines()
    assert line.startswith(f"stopped at phy offset {store.writer.position}, stored 2023-11-14T22:13:")
    assert f": 10 messages, 20 entries, 8 units into {out} in " in line
    assert noted == f"mqindex: follows {store.root} into {out} from phy offset 0\n"


def test_a_terminal_shows_where_it_is(store: GrowingStore, conf: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", UNHINDERED, "follow", store.root, "--out", tmp_path / "out", "--broker-conf", conf,
         *GEOMETRY],
        stdout=subprocess.PIPE, stderr=theirs, text=True,
    )  # fmt: skip
    os.close(theirs)
    shown, caught_up = "", f"phy offset {store.writer.position:,}  0 bytes behind"
    while caught_up not in plain(shown) or "messages/s" not in shown:
        shown += os.read(ours, 4096).decode()
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=300)
    os.close(ours)
    assert running.returncode == 0
    assert out.startswith("stopped at phy offset ")
    # Written over the one before: it was told on a line of its own each time, and its end as text.
    assert re.search(r"\r" + caught_up + r"  [\d,]+ messages/s[^\r\n]*\x1b\[K", shown)


def test_a_signal_that_comes_twice_at_once_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout` signals its child, and then the group that the child is in."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(trouble, "_received", [])
    stop = _Stop()
    with pytest.raises(KeyboardInterrupt):
        stop.handle(signal.SIGINT, None)  # the loop has not begun
    assert not stop.is_set()
    stop.handle(signal.SIGINT, None)
    now[0] += 0.1
    stop.handle(signal.SIGINT, None)
    assert stop.is_set()
    now[0] += 1
    with pytest.raises(KeyboardInterrupt):
        stop.handle(signal.SIGINT, None)


STARTING = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from mqindex.rocketmq.dispatch import follow
def starts(*arguments, **options):
    signal.raise_signal(NUMBER)
follow.follow = starts
from mqindex.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_loop_is_the_one_that_ends_it(
    store: GrowingStore, tmp_path: Path, number: signal.Signals
) -> None:
    """It ended by SIGINT, whatever came."""
    words = [
        sys.executable,
        "-c",
        STARTING.replace("NUMBER", str(int(number))),
        "follow",
        store.root,
        "--out",
        tmp_path / "out",
    ]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == -number


def test_a_store_that_vanishes_is_trouble(store: GrowingStore, conf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with following(store, out, conf) as running:
        wait_for(running, store.writer.position)
        store.root.rename(tmp_path / "moved")
        said, noted = running.communicate(timeout=300)
    assert running.returncode == 2
    assert noted.splitlines()[-1].startswith(f"mqindex: {store.root / 'commitlog'}: No such file or directory")
    assert "stopped" not in said


def test_what_is_no_store_is_told_so(shell: Shell, tmp_path: Path) -> None:
    done = shell("follow", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert (done.status, done.out) == (2, "")
    assert "no such directory" in done.err
