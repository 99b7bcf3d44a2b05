"""Zones of a few messages each, so that a small log has many."""

from __future__ import annotations

import pytest

from mqindex.rocketmq.tally import split_zones
from mqindex.zones import zone_map

__all__ = ["small_zones"]

SMALL = 2048  # bytes


@pytest.fixture
def small_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (zone_map, split_zones):
        monkeypatch.setattr(module, "ZONE_BYTES", SMALL)
