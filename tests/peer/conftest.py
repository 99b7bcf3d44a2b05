"""One line in the summary of a run for each thing that a real broker proved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest


@pytest.fixture
def say_proven(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Adds a line to the summary."""
    return partial(record_property, "shown with real brokers")
