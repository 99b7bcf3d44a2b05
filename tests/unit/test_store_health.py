"""Parts of a store's report that no golden store shows: groups that are ahead, a log that changes meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FormatError
from mqindex.files.mapped_file import MappedFile
from mqindex.rocketmq.checks import log_check
from mqindex.rocketmq.health.groups import groups_of
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.queue.queue_rules import QueueRules


def test_a_group_that_is_ahead_in_one_queue_is_still_behind_in_another(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    offsets = {"T@g": {"0": 40, "1": 900, "2": 7, "9": 3}, "Gone@g": {"0": 5}}
    (tmp_path / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    groups = groups_of(LocalEngine(1), str(tmp_path), {("T", 0): 100, ("T", 1): 100, ("T", 2): 7})
    first, gone = groups.groups
    assert [(one.queue_id, one.lag) for one in first.queues] == [(0, 60), (2, 0), (1, -800), (9, None)]
    assert (first.lag, first.unknown, gone.lag, gone.unknown, groups.lag) == (60, 1, 0, 1, 60)


def test_a_message_that_is_gone_from_the_log_meanwhile_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}"
    path.write_bytes(bytes(4096))
    span = LogSpan(str(path), 0, 4096)
    check = log_check.LogCheck(
        span=span, start=0, stop=4096, resync=False, tags=False, check_crc=False, rules=QueueRules(), queues=None,
        ext=None, stretches=(),
    )  # fmt: skip
    with MappedFile.open(str(path)) as log, pytest.raises(FormatError, match="no frame begins here"):
        log_check._stored(log, check, 0)
