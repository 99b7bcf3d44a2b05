"""What the kill rounds add to the summary of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def tell_kills(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Adds a line: what was killed how often, and what nothing is lost of."""

    def tell(what: str, kills: int, **figures: int) -> None:
        told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in figures.items())
        record_property("kill -9 at any time", f"{what}: {kills:,} kills, {told}")

    return tell
