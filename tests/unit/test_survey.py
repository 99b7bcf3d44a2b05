"""The look at a store before the work: how much there will be to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import estimated_entries, survey
from tests.support.log_writer import LogMessage, LogWriter


@pytest.mark.parametrize("body", [100, 700_000])
def test_entries_are_estimated_from_samples_whatever_the_size_of_the_messages(tmp_path: Path, body: int) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=4 << 20)
    count = (4 << 20) // (body + 200)
    for _ in range(count):
        writer.write(LogMessage(keys="a b c", body=bytes(body)))
    entries, units = estimated_entries(survey(store_options(tmp_path)))
    assert 0.8 * 3 * count <= entries <= 1.25 * 3 * count
    assert 0.8 * count <= units <= 1.25 * count
