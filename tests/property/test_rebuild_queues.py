"""Rebuilt consume queues are the twin's, whatever queue offsets a log has and however it is cut."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex.engines import LocalEngine
from mqindex.rocketmq import rebuild
from mqindex.rocketmq.pipeline import queue_stages
from mqindex.rocketmq.queue.queue_names import name_problem
from tests.reference.commit_log import scan_log
from tests.reference.dispatch import Rules
from tests.reference.queue_files import build_queues
from tests.reference.rebuild import log_files
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.memory_disk import memory_disk
from tests.support.tree import queue_contents

SYSTEM = ["%RETRY%g", "rmq_sys_wheel_timer", "rmq_sys_x"]
DISPATCHED = {"5.1.0": 7, "5.1.1": 6, "5.1.2": 6, "5.1.3": 4, "5.1.4": 4, "5.2.0": 0}
LEVELS = [1000, 5000]
CONFIG = {"messageDelayLevel": "1s 5s", "maxHashSlotNum": 5, "maxIndexNum": 50}
steps = st.sampled_from([1] * 12 + [0, 2, 3, 30, -1, -2, -40, 1000, 1025, 3000, 2**50, -(2**40), 2**62])


@st.composite
def logs(draw: st.DrawFn) -> list[LogMessage]:
    """Messages of a few queues, whose offsets mostly follow each other."""
    following: dict[tuple[str, int], int] = {}
    messages = []
    for _ in range(draw(st.integers(1, 60))):
        topic = draw(st.sampled_from(["A", "A", "B", "SCHEDULE_TOPIC_XXXX", "a/b", ".."]) | st.sampled_from(SYSTEM))
        queue_id = draw(st.sampled_from([0, 0, 1, -1]))
        name = topic, queue_id
        at = following.get(name, draw(st.sampled_from([0, 0, 1, 7, 300, 2**40])) - 1) + draw(steps)
        at = draw(st.sampled_from([at] * 20 + [0]))
        at = max(min(at, 2**63 - 1), -(2**63))
        following[name] = at if -(2**40) < at < 2**55 else 3
        properties = [("TAGS", draw(st.sampled_from(["x", "pay-success"])))]
        if draw(st.integers(0, 3)) == 0:
            properties.append(("INNER_MULTI_DISPATCH", draw(st.sampled_from(["%LMQ%q,A", "A,A", "%LMQ%q,%LMQ%r"]))))
            offsets = draw(st.lists(st.integers(0, 5), min_size=2, max_size=2))
            properties.append(("INNER_MULTI_QUEUE_OFFSET", ",".join(map(str, offsets))))
        if topic.startswith("SCHEDULE"):
            properties.append(("DELAY", draw(st.sampled_from(["1", "2", "9"]))))
        body = bytes(draw(st.sampled_from([0, 0, 5, 900])))
        sys_flag = draw(st.sampled_from([0] * 6 + [4, 8, 12]))
        messages.append(
            LogMessage(topic, queue_id=queue_id, queue_offset=at, properties=properties, body=body, sys_flag=sys_flag)
        )
    return messages


@settings(max_examples=100)
@given(
    logs(),
    st.sampled_from([100, 1000]),
    st.sampled_from([None, 24, 110]),
    st.sampled_from([4096, 1 << 20]),
    st.sampled_from([1, 2]),
    st.sampled_from(sorted(DISPATCHED)),
    st.sampled_from([1, 800, 1 << 20]),
)
def test_rebuilt_queues_are_the_twins(
    messages: list[LogMessage],
    file_size: int,
    ext: int | None,
    split_size: int,
    workers: int,
    version: str,
    at_once: int,
) -> None:
    """`at_once`: bytes of units that a task that builds queues reads before it writes."""
    home = Path(tempfile.mkdtemp(dir=memory_disk()))
    try:
        LogWriter(home / "store" / "commitlog", mapped_file_size=8192).write(*messages)
        config = {
            **CONFIG,
            "mappedFileSizeConsumeQueue": file_size,
            "enableConsumeQueueExt": ext is not None,
            **({} if ext is None else {"mappedFileSizeConsumeQueueExt": ext}),
        }
        few_at_once = mock.patch.object(queue_stages, "_READ_AT_ONCE", at_once)
        with few_at_once, mock.patch("os.fsync"):  # thousands of tiny files, and no power failure here
            rebuild(
                home / "store", home / "out", config=config, broker_version=version, split_size=split_size,
                engine=LocalEngine(workers),
            )  # fmt: skip
        records, _, _ = scan_log(log_files(home / "store" / "commitlog"))
        rules = Rules(LEVELS, system_topics=DISPATCHED[version])
        expected = build_queues(records, rules, file_size, ext)
        assert queue_contents(home / "out") == {path: data for path, data in expected.items() if not nameless(path)}
    finally:
        shutil.rmtree(home)


def nameless(path: str) -> bool:
    _, *topic, queue_id, _ = path.split("/")
    return name_problem("/".join(topic), int(queue_id)) is not None
