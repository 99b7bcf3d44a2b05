"""Index and consume queues deleted, rebuilt by mqindex, the broker started: everything is answered as before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from mqindex.report import RebuildReport
from mqindex.rocketmq import rebuild
from tests.peer.rocketmq.conftest import Written
from tests.peer.rocketmq.workload import TOPICS, Answers, ask_everything
from tests.support.tree import contents, index_bytes

PARTS = ("index", "consumequeue")


@dataclass(frozen=True)
class Rebuilt:
    """What was rebuilt, and what the broker answered from it."""

    report: RebuildReport
    index: list[bytes]
    queues: dict[str, str]
    answers: Answers


@pytest.fixture(scope="module")
def rebuilt(written: dict[str, Written]) -> dict[str, Rebuilt]:
    """By version: the broker's store without its derived files, then with ours."""
    with ThreadPoolExecutor() as both:
        return dict(zip(written, both.map(rebuild_and_ask, written.values()), strict=True))


def rebuild_and_ask(before: Written) -> Rebuilt:
    before.restore()
    broker = before.broker
    deleted, anew = broker.home / "deleted", broker.home / "anew"
    deleted.mkdir()
    for part in PARTS:
        (broker.store / part).rename(deleted / part)
    report = rebuild(broker.store, anew, config=broker.conf, broker_version=broker.version)
    index, queues = index_bytes(anew), contents(anew / "consumequeue")
    for part in PARTS:
        (anew / part).rename(broker.store / part)
    broker.launch()
    try:
        broker.wait_until_ready(TOPICS)
        answers = ask_everything(broker, before.sent, before.times)
    finally:
        broker.kill()
    return Rebuilt(report, index, queues, answers)


def test_rebuilt_files_are_the_brokers_own(
    written: dict[str, Written], rebuilt: dict[str, Rebuilt], version: str, proven: Callable[[str], None]
) -> None:
    deleted, found = written[version].store, rebuilt[version]
    assert found.report.ok, found.report.findings
    assert found.index == index_bytes(deleted)
    assert found.queues == contents(deleted / "consumequeue")
    files = sum(kind != "directory" for kind in found.queues.values())
    proven(f"{len(found.index)} index and {files} consume-queue files rebuilt, each byte as the broker's own")


def test_the_broker_answers_from_rebuilt_files_as_before(
    written: dict[str, Written], rebuilt: dict[str, Rebuilt], version: str, proven: Callable[[str], None]
) -> None:
    before = written[version].answers
    after = rebuilt[version].answers.until(max(message.phy_offset + message.size for message in before.messages))
    assert after.queues == before.queues
    assert after.by_key == before.by_key
    assert after.by_unique_key == before.by_unique_key
    assert after.by_offset_id == before.by_offset_id
    assert after.by_tag == before.by_tag
    assert after.by_time == before.by_time
    assert after.mqadmin == before.mqadmin
    queries = len(after.by_key) + len(after.by_unique_key) + len(after.by_offset_id) + len(after.mqadmin)
    proven(
        f"after the rebuild the broker answers {queries} queries and every queue as before, mqadmin's own among them"
    )
