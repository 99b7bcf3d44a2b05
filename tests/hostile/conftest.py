"""Where the hostile tests keep what they spoil."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.memory_disk import memory_disk


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: most stores here are spoilt, repaired and thrown away many times."""
    with tempfile.TemporaryDirectory(prefix="mqindex-hostile-", dir=memory_disk()) as directory:
        yield Path(directory)
