"""The look at a store before the work: how much there will be to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq import verify
from mqindex.rocketmq.metadata import topic_configs
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


def test_the_topics_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look takes from config/topics.json is of one moment, though a broker writes the file anew meanwhile."""
    LogWriter(tmp_path / "commitlog", mapped_file_size=4096).write(LogMessage(keys="a"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "topics.json").write_text('{"topicConfigTable": {"T": {"topicName": "T"}}}')
    read, load = [], topic_configs.load_side_json
    monkeypatch.setattr(topic_configs, "load_side_json", lambda *given: read.append(given) or load(*given))
    verify(tmp_path)
    assert len(read) == 1
