"""One line, at the end of the run, for each thing that a real broker proved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

PROVEN = pytest.StashKey[list[str]]()


@pytest.fixture
def say_proven(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keeps a line for the end of the run."""
    return request.config.stash.setdefault(PROVEN, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(PROVEN, []):
        terminalreporter.section("shown with real brokers")
        for line in sorted(lines):
            terminalreporter.line(line)
