"""Bytes elsewhere that no window asked for: whatever reads them, the error is seen, and taken for no damage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.files.places import remote_file
from mqindex.files.places.place import place_of
from tests.cli.conftest import Shell, shell
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase

__all__ = ["memory", "shell"]  # fixtures

MOST = 40  # windows of each kind of work that are not filled, one after the other


class Unfilled:
    """Of all windows the one of a number, counted from 0, is not filled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number, self.count = -1, 0
        have = remote_file.RemoteFile._have

        def forgets(file: remote_file.RemoteFile, blocks: npt.NDArray[np.intp]) -> Any:
            self.count += 1
            return have(file, blocks[:0] if self.count - 1 == self.number else blocks)

        monkeypatch.setattr(remote_file.RemoteFile, "_have", forgets)

    def at(self, number: int) -> None:
        self.number, self.count = number, 0


@pytest.fixture
def unfilled(memory: Ways, monkeypatch: pytest.MonkeyPatch) -> Unfilled:
    return Unfilled(monkeypatch)


def told(report: Any) -> list[str]:
    return sorted(f"{one.kind} {one.path} {one.at} {one.got}" for one in report.findings)


def requires_seen(unfilled: Unfilled, work: Callable[[], list[str]]) -> None:
    """With any window that is not filled there is the same answer, or an error that is no file's."""
    unfilled.at(-1)
    expected = work()
    count, seen = unfilled.count, 0
    for number in range(0, count, max(count // MOST, 1)):
        unfilled.at(number)
        try:
            found = work()
        except (AssertionError, MQIndexError) as error:
            found = [str(error)]
        if found != expected:
            assert "were used that had not been read" in found[-1], f"window {number} of {count}: {found}"
            seen += 1
    assert seen > 2


def test_verify_and_scan_of_a_store(unfilled: Unfilled, tmp_path: Path) -> None:
    url, one = WAYS.upload(case("medium-493").unpack(tmp_path)), LocalEngine(1)
    requires_seen(unfilled, lambda: told(rocketmq.verify(url, engine=one, cache=False)))
    requires_seen(unfilled, lambda: [str(len(some)) for some in rocketmq.scan(url, cache=False)])


def test_verify_and_scan_of_a_partition(unfilled: Unfilled, tmp_path: Path) -> None:
    url, one = WAYS.upload(PartitionCase("410-txn").closed(tmp_path / "logs")), LocalEngine(1)
    requires_seen(unfilled, lambda: told(kafka.verify(url, engine=one)))
    requires_seen(unfilled, lambda: [str(len(some)) for some in kafka.scan(url, cache=False)])


def test_info(unfilled: Unfilled, shell: Shell, tmp_path: Path) -> None:
    """It prints what it may not know as not known."""
    for directory in (case("medium-493").unpack(tmp_path), PartitionCase("410-txn").closed(tmp_path / "logs")):
        url = WAYS.upload(directory)

        def said() -> list[str]:
            done = shell("info", url, "--all")  # noqa: B023
            return [done.out, done.err]

        requires_seen(unfilled, said)


def test_who_leaves_out_what_cannot_be_read_does_not_hide_it(memory: Ways, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 4096)
    place: Any = place_of(f"{WAYS.upload(tmp_path)}/file")
    with pytest.raises(AssertionError, match=f"bytes of {place} were used that had not been read"):  # noqa: SIM117
        with remote_file.RemoteFile(place) as file:
            with contextlib.suppress(MQIndexError):
                file.map[700_000]
