"""A damaged log of RocketMQ: verify, rebuild and scans tell the same bytes in the same words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mqindex.report import Finding
from mqindex.rocketmq import CommitLog, rebuild, verify
from mqindex.rocketmq.catalogue import FRAMES_AFTER_LOG_END, LOG_DAMAGE
from tests.support.rocketmq_kinds import SHOWN
from tests.unit.test_commit_log import FILE_SIZE, column, write

KINDS = {FRAMES_AFTER_LOG_END.name, *(kind.name for kind in LOG_DAMAGE.values())}


def told(findings: tuple[Finding, ...]) -> list[str]:
    return sorted(str(one).removeprefix(f"{one.severity} ") for one in findings if one.kind in KINDS)


def scanned(store: Path, piece: int | None = None) -> list[str]:
    with CommitLog.open(store / "commitlog") as log:
        begin, end = log.min_phy_offset, log.files[-1].stop
        for start in range(begin, end, piece or end - begin):
            column(log, "phy_offset", start, start + (piece or end), check_crc=True)
        return sorted(map(str, log.damage))


@pytest.mark.parametrize("name", sorted(KINDS & set(SHOWN)))
def test_damage_is_told_in_one_way(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each had words of its own, and verify took a phy offset for a byte of the file."""
    store, options = SHOWN[name](tmp_path)
    expected = scanned(store)
    assert expected and scanned(store, 1000) == expected
    options.pop("deep", None)
    reports = [told(verify(store, deep=True, **options).findings)]
    monkeypatch.setattr(sys.modules["mqindex.rocketmq.verify"], "split_size_for", lambda _: 4096)
    reports.append(told(verify(store, deep=True, **options).findings))
    if "body_crc" not in expected[0]:  # dispatch does not look at bodies
        reports.append(told(rebuild(store, tmp_path / "out", split_size=4096, **options).findings))
    for findings in reports:
        assert len(findings) == len(expected)
        assert all(finding.startswith(one) for finding, one in zip(findings, expected, strict=True))


@pytest.mark.parametrize("known", [False, True])
def test_nothing_is_read_behind_the_logs_end(tmp_path: Path, known: bool) -> None:
    """Frames of an earlier life came, where a scan began among them."""
    writer = write(tmp_path)
    last_start = writer.position // FILE_SIZE * FILE_SIZE
    places = [at for at, _ in writer.frames if at >= last_start]
    writer.overwrite(places[2] + 28, b"\xff")
    with CommitLog.open(tmp_path) as log:
        assert not known or log.max_phy_offset == places[2]
        assert column(log, "phy_offset", places[3]) == []
        assert [(one.at, one.behind) for one in log.damage] == [(places[2], len(places) - 3)]
        assert column(log, "phy_offset", places[1]) == places[1:2]
        assert column(log, "phy_offset", places[1] - 1) == places[1:2]
        assert column(log, "phy_offset", places[1] + 1) == []
