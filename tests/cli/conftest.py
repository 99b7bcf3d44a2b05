"""How the tests run a command line: in this process for what it prints, in one of its own for how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqindex.cli import main
from tests.support.golden import StoreCase, case
from tests.support.imported import import_all

COMMAND = [sys.executable, "-m", "mqindex"]
NOBODY = 65534


@dataclass(frozen=True)
class Done:
    """What a command line came to."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> list[dict[str, Any]]:
        """Every line of stdout as an object."""
        return [json.loads(line) for line in self.lines]


Shell = Callable[..., Done]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Run `mqindex ARGUMENTS...` in this process: shell("verify", path, stdin=b"")."""

    def run(*arguments: str | os.PathLike[str], stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        status = main([os.fspath(argument) for argument in arguments])
        return Done(status, *capsys.readouterr())

    return run


def process(*arguments: str | os.PathLike[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `mqindex ARGUMENTS...` in a process of its own."""
    defaults: dict[str, Any] = {"capture_output": True, "timeout": 600}
    return subprocess.run([*COMMAND, *map(os.fspath, arguments)], check=False, **(defaults | options))


@dataclass(frozen=True)
class Store:
    """A golden store, unpacked, and what the broker said of it."""

    case: StoreCase
    root: Path

    @property
    def index_files(self) -> list[Path]:
        return sorted((self.root / "index").iterdir())

    @property
    def log_files(self) -> list[Path]:
        return sorted((self.root / "commitlog").iterdir())

    @property
    def queue_files(self) -> list[Path]:
        """The files of consume queues, as paths below the root."""
        found = (self.root / "consumequeue").rglob("*")
        return sorted(path.relative_to(self.root) for path in found if path.is_file())

    def contents(self) -> dict[str, bytes]:
        """Every file below the root."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def basic(tmp_path: Path) -> Store:
    """A 4.9.3 store of four index files, the last not full."""
    chosen = case("basic-493")
    return Store(chosen, chosen.unpack(tmp_path))


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[Store]:
    """A store whose broker crashed and lost 1258 of 1466 index entries."""
    chosen = case("killed-lost-493")
    yield Store(chosen, chosen.unpack_after(tmp_path))


@pytest.fixture
def public() -> Iterator[Store]:
    """The basic store in a place that every user of this machine may enter."""
    chosen = case("basic-493")
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Store(chosen, chosen.unpack(Path(place)))


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Root may do anything: give that up for a while."""
    if os.geteuid() != 0:
        yield
        return
    import_all()
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
