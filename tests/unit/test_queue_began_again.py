"""A topic that begins at queue offset 0 a second time: deleted and created again, or offsets that were given twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.report import Finding
from mqindex.rocketmq import rebuild, verify
from mqindex.rocketmq.checks.queues.queue_diagnosis import diagnose_queues
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import survey
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

CONFIG = {"maxHashSlotNum": 5, "maxIndexNum": 16, "mappedFileSizeConsumeQueue": 100}
ONE = LocalEngine(1)


def store_with(root: Path, queue_offsets: list[int]) -> Path:
    """A log with one queue's messages, and the queue as it is rebuilt from it."""
    writer = LogWriter(root / "commitlog", mapped_file_size=4096)
    writer.write(*(
        LogMessage("T", queue_offset=offset, keys=f"k{number}", store_timestamp=FIRST_TIME + number)
        for number, offset in enumerate(queue_offsets)
    ))  # fmt: skip
    rebuild(root, root / "out", config=CONFIG, engine=ONE)
    for part in ("index", "consumequeue"):
        (root / "out" / part).rename(root / part)
    return root


def said(root: Path, **options: int) -> Finding:
    (one,) = [
        one for one in verify(root, config=CONFIG, engine=ONE, **options).findings if one.kind == "queue-began-again"
    ]
    return one


def test_a_queue_offset_that_two_messages_have_is_a_warning(tmp_path: Path) -> None:
    """A topic was deleted and created again: the store was never clean while its log had the older messages."""
    root = store_with(tmp_path, [*range(30), *range(12)])
    assert verify(root, config=CONFIG, engine=ONE).ok
    one = said(root)
    assert one.severity == "warning"
    assert "given twice" in str(one.hint)
    assert "30 units" in str(one.got)


def test_a_queue_that_is_not_what_a_broker_dispatched_since_is_an_error(tmp_path: Path) -> None:
    root = store_with(tmp_path, [*range(30), *range(12)])
    (root / "consumequeue" / "T" / "0" / f"{100:020d}").unlink()
    report = verify(root, config=CONFIG, engine=ONE)
    assert "missing-units" in {one.kind for one in report.findings if one.severity == "error"}


@pytest.mark.parametrize("split_size", [300, 700, 1 << 20])
def test_wherever_the_log_is_cut(split_size: int, tmp_path: Path) -> None:
    found = survey(store_options(store_with(tmp_path, [*range(30), *range(12)]), config=CONFIG))
    seen = diagnose_queues(ONE, found, deep=True, split_size=split_size)
    (one,) = seen.findings
    assert (one.kind, one.severity) == ("queue-began-again", "warning")
    assert seen.bad == seen.missing == ()  # a repair would write the same


def test_older_messages_whose_offsets_nobody_has_again_are_information(tmp_path: Path) -> None:
    root = store_with(tmp_path, [*range(70, 90), *range(12)])
    assert said(root).severity == "info"
    assert verify(root, config=CONFIG, engine=ONE).ok
