"""Where the crash tests keep their stores."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.memory_disk import memory_disk


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: a killed process loses nothing that it wrote, synced or not.

    What a power cut may take is taken by the tests themselves.
    """
    with tempfile.TemporaryDirectory(prefix="mqindex-crash-", dir=memory_disk()) as directory:
        yield Path(directory)
