"""What the kill rounds add to the summary of a run, and a directory for stores of other users."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tell_kills(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Adds a line: what was killed how often, and what nothing is lost of."""

    def tell(what: str, kills: int, **figures: int) -> None:
        told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in figures.items())
        record_property("kill -9 at any time", f"{what}: {kills:,} kills, {told}")

    return tell


@pytest.fixture
def seen_by_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that other users reach, beside pytest's own, which they cannot."""
    base = tmp_path_factory.getbasetemp()
    path = Path(tempfile.mkdtemp(dir=next(above for above in base.parents if above.stat().st_mode & 0o001)))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)
