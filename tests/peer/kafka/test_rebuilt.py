"""Indexes deleted, lost and damaged, brought back by mqindex, the broker started: everything is answered as before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqindex.errors import StoreInUseError
from mqindex.kafka import rebuild, repair, verify
from mqindex.report import RebuildReport, Report
from tests.peer.kafka.broker import Broker, complaints
from tests.peer.kafka.conftest import Written
from tests.peer.kafka.workload import TOPICS, Answers, ask

REBUILT = ("codecs", "appended", "paid", "dense")
SUFFIXES = ("index", "timeindex", "txnindex")
Content = dict[str, bytes]


@dataclass(frozen=True)
class Life:
    """What a broker answered in one life and logged, by topic, and what it left behind."""

    answers: dict[str, Answers]
    complaints: dict[str, list[str]]
    left: dict[str, Content]


@dataclass(frozen=True)
class Lives:
    """The second life: indexes rebuilt, repaired, some lost, some deleted. The third: after another repair."""

    reports: dict[str, RebuildReport]
    wrong: dict[str, Report]
    damaged: subprocess.CompletedProcess[str]
    placed: dict[str, Content]
    second: Life
    refused: bool
    lost: subprocess.CompletedProcess[str]
    mended: dict[str, Content]
    third: Life


@pytest.fixture(scope="module")
def lives(written: dict[str, Written]) -> dict[str, Lives]:
    """By version."""
    with ThreadPoolExecutor() as both:
        return dict(zip(written, both.map(live_on, written.values()), strict=True))


def live_on(before: Written) -> Lives:
    broker = before.broker
    reports = {topic: rebuild_indexes(broker, topic) for topic in REBUILT}
    damage(broker.partition("damaged"))
    delete(broker.partition("lost"), ["timeindex"])
    wrong = {topic: verify(broker.partition(topic)) for topic in ("damaged", "lost")}
    interval = str(TOPICS["damaged"].index_interval_bytes)
    damaged = mqindex_repair(broker.partition("damaged"), "--index-interval-bytes", interval)
    delete(broker.partition("deleted"), SUFFIXES)
    placed = content(broker)

    broker.launch()
    broker.wait_until_ready(TOPICS)
    try:
        repair(broker.log_dir)
        refused = False
    except StoreInUseError:
        refused = True
    second = end_of_life(before)

    lost = mqindex_repair(broker.log_dir)
    mended = content(broker)
    broker.launch()
    broker.wait_until_ready(TOPICS)
    return Lives(reports, wrong, damaged, placed, second, refused, lost, mended, end_of_life(before))


def end_of_life(before: Written) -> Life:
    broker = before.broker
    answers = {topic: ask(broker, topic, before.answers[topic]) for topic in TOPICS}
    said = broker.stop()
    return Life(answers, {topic: complaints(said, f"{topic}-0") for topic in TOPICS}, content(broker))


def rebuild_indexes(broker: Broker, topic: str) -> RebuildReport:
    partition, anew = broker.partition(topic), broker.home / f"{topic}-anew"
    delete(partition, SUFFIXES)
    interval = TOPICS[topic].index_interval_bytes
    report = rebuild(partition, anew, index_interval_bytes=interval, kafka_version=broker.version)
    for path in anew.iterdir():
        path.rename(partition / path.name)
    return report


def mqindex_repair(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mqindex", "repair", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def damage(partition: Path) -> None:
    """An entry that leads into the middle of a batch, a time index without an entry, a lost transaction index."""
    indexes = sorted(path for path in partition.glob("*.index") if path.stat().st_size > 16)
    with open(indexes[0], "r+b") as index:
        index.seek(15)
        last = index.read(1)[0]
        index.seek(15)
        index.write(bytes([last ^ 1]))
    sorted(partition.glob("*.timeindex"))[1].write_bytes(b"")
    max(partition.glob("*.txnindex")).unlink()


def delete(partition: Path, suffixes: Iterable[str]) -> None:
    for suffix in suffixes:
        for path in partition.glob(f"*.{suffix}"):
            path.unlink()


def content(broker: Broker) -> dict[str, Content]:
    return {topic: files_of(broker.partition(topic)) for topic in TOPICS}


def files_of(partition: Path) -> Content:
    """Logs and indexes."""
    paths = sorted(path for suffix in ("log", *SUFFIXES) for path in partition.glob(f"*.{suffix}"))
    return {path.name: path.read_bytes() for path in paths}


def test_rebuilt_indexes_are_the_brokers_own(
    written: dict[str, Written], lives: dict[str, Lives], version: str, proven: Callable[[str], None]
) -> None:
    files = 0
    for topic in REBUILT:
        report = lives[version].reports[topic]
        assert report.ok, report.findings
        assert lives[version].placed[topic] == files_of(written[version].partition(topic)), topic
        files += report.files
    proven(f"{files} index files rebuilt, each byte as the broker's own")


def test_the_broker_takes_rebuilt_indexes_as_they_are(
    written: dict[str, Written], lives: dict[str, Lives], version: str, proven: Callable[[str], None]
) -> None:
    found, asked = lives[version], 0
    for topic in REBUILT:
        for life in (found.second, found.third):
            assert life.complaints[topic] == []
            assert life.left[topic] == found.placed[topic], topic
            assert life.answers[topic] == written[version].answers[topic], topic
        asked += len(found.second.answers[topic].by_time)
    proven(
        f"after the rebuild the broker starts twice without a word of recovery, answers {asked} offsets-for-times and "
        "every read as before, and leaves each file as it was"
    )


def test_what_the_broker_itself_rebuilds_has_the_same_bytes(
    written: dict[str, Written], lives: dict[str, Lives], version: str, tmp_path: Path, proven: Callable[[str], None]
) -> None:
    said = lives[version].second.complaints["deleted"]
    assert said, "the broker's recovery of deleted indexes was not seen in its log: neither would another one be"
    partition = written[version].partition("deleted")
    interval = TOPICS["deleted"].index_interval_bytes
    rebuild(partition, tmp_path / "anew", index_interval_bytes=interval, kafka_version=version)
    anew = files_of(tmp_path / "anew")
    left = lives[version].second.left["deleted"]
    assert {name: data for name, data in left.items() if not name.endswith(".log") and (data or name in anew)} == anew
    proven(
        f"deleted indexes cost the broker {len(said)} lines of recovery; it then wrote the bytes that rebuild writes"
    )


def test_lost_time_indexes_give_wrong_answers_until_they_are_repaired(
    written: dict[str, Written], lives: dict[str, Lives], version: str, proven: Callable[[str], None]
) -> None:
    found, right = lives[version], written[version].answers["lost"]
    wrong = {
        time: answer for time, answer in found.second.answers["lost"].by_time.items() if answer != right.by_time[time]
    }
    assert len(wrong) > 20
    assert found.second.complaints["lost"] == []
    assert {len(data) for name, data in found.second.left["lost"].items() if name.endswith(".timeindex")} == {0}

    assert not found.wrong["lost"].ok, "verify sees what the broker does not say"
    assert found.lost.returncode == 0, found.lost.stdout + found.lost.stderr
    assert found.mended["lost"] == files_of(written[version].partition("lost"))
    assert found.third.answers["lost"] == right
    assert found.third.complaints["lost"] == []
    assert found.third.left["lost"] == found.mended["lost"]
    proven(
        f"without its time indexes the broker answers {len(wrong)} of {len(right.by_time)} offsets-for-times wrongly, "
        "and says nothing; after `mqindex repair` all are right"
    )


def test_repair_touches_only_what_is_wrong(
    written: dict[str, Written], lives: dict[str, Lives], version: str, proven: Callable[[str], None]
) -> None:
    found = lives[version]
    others = [topic for topic in TOPICS if topic != "lost"]
    assert {topic: found.mended[topic] for topic in others} == {topic: found.second.left[topic] for topic in others}
    errors = [finding for finding in found.wrong["damaged"].findings if finding.severity == "error"]
    assert {Path(finding.path).suffix for finding in errors} == {".index", ".timeindex", ".txnindex"}, errors
    assert found.damaged.returncode == 0, found.damaged.stdout + found.damaged.stderr
    partition = written[version].broker.partition("damaged")
    assert found.placed["damaged"] == files_of(written[version].partition("damaged"))
    (backup,) = partition.glob("mqindex-backup-*")
    kept = sorted(path.suffix for path in backup.iterdir())
    assert kept == [".index", ".json", ".timeindex"]
    for life in (found.second, found.third):
        assert life.complaints["damaged"] == []
        assert life.left["damaged"] == found.placed["damaged"]
        assert life.answers["damaged"] == written[version].answers["damaged"]
    proven("damaged indexes repaired; the broker starts beside the backup of the replaced ones, and answers as before")


def test_a_log_dir_that_a_broker_holds_is_not_repaired(
    lives: dict[str, Lives], version: str, proven: Callable[[str], None]
) -> None:
    assert lives[version].refused
    proven("a log dir of a running broker is refused by repair")
