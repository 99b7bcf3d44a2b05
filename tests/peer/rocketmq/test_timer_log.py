"""What is in the directory of the timer log, with which a broker of 5.x starts or does not, and what it deletes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.report import Start
from mqindex.rocketmq import verify
from tests.peer.thresholds.ask import answer
from tests.peer.thresholds.questions import Question
from tests.support.nightly import some

LENGTH = 1 << 20
FIRST, SECOND = f"{0:020d}", f"{LENGTH:020d}"
RELEASES = ("5.0.0", "5.1.0", "5.1.4", "5.3.3", "5.5.1")  # on both sides of 5.1 and 5.1.3, which load otherwise
SETTINGS = {"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 1000, "mappedFileSizeTimerLog": LENGTH}


def files(sizes: dict[str, int]) -> Callable[[Path], None]:
    """Files of zeros."""

    def make(log: Path) -> None:
        for name, size in sizes.items():
            (log / name).write_bytes(bytes(size))

    return make


HARMS: dict[str, Callable[[Path], None]] = {
    "whole files": files({FIRST: LENGTH, SECOND: LENGTH}),
    "a file of another length": files({FIRST: LENGTH - 1}),
    "a last file of another length": files({FIRST: LENGTH, SECOND: 1000}),
    "an empty last file": files({FIRST: LENGTH, SECOND: 0}),
    "an empty file before the last": files({FIRST: 0, SECOND: LENGTH}),
    "a file of another name": files({"copy": LENGTH}),
    "a directory": lambda log: (log / "lost+found").mkdir(),
}


@pytest.mark.parametrize(
    ("release", "harm"), some(itertools.product(RELEASES, HARMS), lambda *each: each == ("5.5.1", "an empty last file"))
)
def test_timers_are_loaded_where_verify_says_so(
    release: str, harm: str, tmp_path: Path, say_proven: Callable[[str], None]
) -> None:
    said: list[Start] = []

    def harmed(store: Path) -> None:
        (store / "timerlog").mkdir()
        HARMS[harm](store / "timerlog")
        start = verify(store, broker_version=release, config=SETTINGS).start
        assert start is not None
        said.append(start)

    words = (f"mappedFileSizeTimerLog={LENGTH}", "timer")
    loaded = answer(Question("", "", (release,), words, "load |timers ", harmed), release, tmp_path)
    assert (loaded == "load true, timers load true") is said[0].starts, loaded
    assert said[0].starts is False or [path for path in said[0].deletes if Path(path).exists()] == []
    say_proven(
        f"RocketMQ {release}: with {harm} in its timer log it {'starts' if said[0].starts else 'does not start'}"
    )
