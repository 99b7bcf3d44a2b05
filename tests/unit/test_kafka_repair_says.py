"""The errors that a repair reports are those that the next verify finds, whatever is damaged, and `ok` too."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mqindex.kafka import repair, verify
from tests.support.kafka_damage import DAMAGE, INTERVAL, LOG_DAMAGE, STOPS, filled_log_dir
from tests.support.kafka_log_dir import ONE
from tests.support.nightly import one_of
from tests.support.repair_says import check_repair

HOW: dict[str, Any] = {"index_interval_bytes": INTERVAL, "engine": ONE}
WITH_OTHERS = [f"log {name} {where}" for name in LOG_DAMAGE for where in ("middle", "newest")] + list(STOPS)
OTHERS = ("index lost", "index noise", "timeindex lost", "txnindex lost", "index directory", "txnindex noise")


def check(log_dir: Path, **how: Any) -> None:
    check_repair(log_dir, partial(verify, **HOW), partial(repair, **HOW, **how), whole=not how)


def test_a_log_dir_that_is_whole_is_whole(tmp_path: Path) -> None:
    assert verify(filled_log_dir(tmp_path), **HOW).findings == []


@pytest.mark.parametrize(("name", "stop"), one_of(2, DAMAGE, ["clean", "unclean"]))
def test_of_every_damage(name: str, stop: str, tmp_path: Path) -> None:
    log_dir = filled_log_dir(tmp_path)
    DAMAGE[name](log_dir)
    if stop == "unclean":
        (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        (log_dir / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 30\n")
    check(log_dir)


@pytest.mark.parametrize(("name", "other"), one_of(3, WITH_OTHERS, OTHERS))
def test_of_two_damages(name: str, other: str, tmp_path: Path) -> None:
    log_dir = filled_log_dir(tmp_path)
    DAMAGE[name](log_dir)
    DAMAGE[f"{other} {'middle' if 'middle' in name else 'newest'}"](log_dir)
    check(log_dir)


@pytest.mark.parametrize(
    ("name", "other"), one_of(3, [name for name in WITH_OTHERS if name not in STOPS], [None, *OTHERS])
)
def test_where_the_log_is_to_be_cut(name: str, other: str | None, tmp_path: Path) -> None:
    log_dir = filled_log_dir(tmp_path)
    DAMAGE[name](log_dir)
    if other is not None:
        DAMAGE[f"{other} {name.rsplit(maxsplit=1)[-1]}"](log_dir)
    check(log_dir, cut_damaged=True)
