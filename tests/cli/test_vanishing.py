"""Files and directories that go away while a command reads: a result or one clear sentence, whichever moment it is."""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import follow
from tests.cli.conftest import Shell

LOOKS = ("stat", "lstat", "open", "scandir", "listdir", "readlink")
MOMENTS = 6  # of each command and way, at random

COMMANDS = [
    ("info", "S"), ("info", "P"), ("info", "L"), ("verify", "S"), ("verify", "S", "--deep"), ("verify", "P", "--deep"),
    ("verify", "L"), ("verify", "S/index"), ("verify", "S/commitlog"), ("verify", "P/00000000000000000483.log"),
    ("dump", "S/commitlog"), ("dump", "S/consumequeue"), ("dump", "S/index"), ("dump", "P"), ("dump", "P", "--records"),
    ("report", "S", "--out", "O/r.html"), ("report", "L", "--out", "O/r.html"), ("repair", "S", "--dry-run"),
    ("repair", "S"), ("repair", "P"), ("repair", "L"), ("rebuild", "S", "--out", "O/o"),
    ("rebuild", "P", "--out", "O/o"),
    ("query", "S", "--topic", "OrderTopic", "order-1", "--messages", "--exact"), ("query", "P", "--offset", "500"),
    ("query", "P", "--timestamp", "1700000015000"), ("message", "S", "0"),
]  # fmt: skip


class Vanishing:
    """At the `moment`-th look below `root`, what is looked at goes, or the directory that it is in."""

    def __init__(self, root: Path, moment: int, *, whole: bool) -> None:
        self.root, self.moment, self.whole = f"{root}/", moment, whole
        self.looks = 0
        self.gone: str | None = None
        self._acting = False

    def __call__(self, path: Any) -> None:
        if self._acting or not isinstance(path, str) or not path.startswith(self.root):
            return
        self.looks += 1
        if self.looks == self.moment:
            self._acting = True
            self.gone = os.path.dirname(path) if self.whole and os.path.dirname(path) + "/" != self.root else path
            if os.path.isdir(self.gone):
                shutil.rmtree(self.gone, ignore_errors=True)
            elif os.path.lexists(self.gone):
                os.unlink(self.gone)
            self._acting = False


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Vanishing]]:
    """The one in the list is told of every look."""
    current: list[Vanishing] = []

    def told(usual: Callable[..., Any]) -> Callable[..., Any]:
        def look(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            for each in current:
                each(path)
            return usual(path, *arguments, **options)

        return look

    for name in LOOKS:
        monkeypatch.setattr(os, name, told(getattr(os, name)))
    monkeypatch.setattr(builtins, "open", told(builtins.open))
    yield current
    current.clear()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mqindex.cli import main

    home = tmp_path_factory.mktemp("vanishing") / "sample"
    assert main(["sample", str(home)]) == 0
    return home


@pytest.mark.parametrize("whole", [False, True], ids=["itself", "its directory"])
@pytest.mark.filterwarnings("ignore")
def test_no_moment_is_a_bug(
    shell: Shell, tmp_path: Path, sample: Path, looking: list[Vanishing], rng: random.Random, whole: bool
) -> None:
    """`dump` beside a topic that was deleted was a KeyError, a repair of a deleted partition an IndexError."""
    root = tmp_path / "w"
    named = {"S": root / "store", "P": root / "logs" / "orders-0", "L": root / "logs", "O": root / "out"}

    def run(words: tuple[str, ...], moment: int) -> tuple[Vanishing, str | None]:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(sample / "store", named["S"])
        shutil.copytree(sample / "orders-0", named["P"])
        named["O"].mkdir()
        line = [
            words[0],
            *(str(named[w[0]]) + w[1:] if w[0] in named and w[1:2] in ("", "/") else w for w in words[1:]),
        ]
        vanishing = Vanishing(root, moment, whole=whole)
        looking.append(vanishing)
        try:
            done = shell(*line)
        finally:
            looking.clear()
        fine = done.status in (0, 1, 2) and "a bug in mqindex" not in done.err and "Traceback" not in done.err
        return vanishing, None if fine else f"{line}: {vanishing.gone} goes at look {moment}: {done.err}"

    problems = []
    for words in COMMANDS:
        usual, problem = run(words, 0)
        assert usual.looks > 3, words
        problems.append(problem)
        moments = rng.sample(range(1, usual.looks + 1), min(MOMENTS, usual.looks))
        problems += [run(words, moment)[1] for moment in moments]
    assert [one for one in problems if one is not None] == []


class StopsSoon:
    """Of a follower: after some looks at the log."""

    def __init__(self) -> None:
        self.asked = 0

    def is_set(self) -> bool:
        self.asked += 1
        return self.asked > 6

    def wait(self, seconds: float) -> bool:
        return self.is_set()


@pytest.mark.parametrize("whole", [False, True], ids=["itself", "its directory"])
@pytest.mark.filterwarnings("ignore")
def test_no_moment_is_a_bug_of_a_follower(
    tmp_path: Path, sample: Path, looking: list[Vanishing], rng: random.Random, whole: bool
) -> None:
    root = tmp_path / "w"

    def run(moment: int) -> Vanishing:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(sample / "store", root / "store")
        vanishing = Vanishing(root, moment, whole=whole)
        looking.append(vanishing)
        try:
            with contextlib.suppress(MQIndexError, OSError):
                follow(root / "store", root / "out", stop=StopsSoon(), engine=LocalEngine(1))
        finally:
            looking.clear()
        return vanishing

    looks = run(0).looks
    assert looks > 10
    for moment in rng.sample(range(1, looks + 1), min(60, looks)):
        run(moment)
