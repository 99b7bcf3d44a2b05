"""Where the crash tests keep their stores, and what the kill rounds say at the end of a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.memory_disk import memory_disk

KILLS = pytest.StashKey[list[str]]()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: a killed process loses nothing that it wrote, synced or not.

    What a power cut may take is taken by the tests themselves.
    """
    with tempfile.TemporaryDirectory(prefix="mqindex-crash-", dir=memory_disk()) as directory:
        yield Path(directory)


@pytest.fixture
def tell_kills(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keeps a line for the end of the run: what was killed how often, and what nothing is lost of."""

    def tell(what: str, kills: int, **figures: int) -> None:
        told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in figures.items())
        request.config.stash.setdefault(KILLS, []).append(f"{what}: {kills:,} kills, {told}")

    return tell


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(KILLS, []):
        terminalreporter.section("kill -9 at any time")
        for line in lines:
            terminalreporter.line(line)
