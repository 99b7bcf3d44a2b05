"""The page of Kafka's partitions: every number of it is in the report's JSON, whatever the partitions are like."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from mqindex import kafka
from mqindex.html import text
from mqindex.html.kafka import page_of
from mqindex.html.render import MAX_BYTES, render
from mqindex.kafka.catalogue import CATALOGUE
from mqindex.report import Report
from mqindex.wording.findings import grouped
from mqindex.wording.reports import counts, settings, work_done
from mqindex.wording.verdict import verdict
from tests.html.test_store_page import numbers_in, strings
from tests.support.golden_kafka import PartitionCase
from tests.support.html_page import Html, at, requires_accessible, requires_nothing_from_elsewhere
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

FORMS = (text.count, text.size, text.moment, text.times, text.span, text.days, str)
CASES = ["410-plain-mono", "410-codecs", "410-txn-open", "410-backwards", "282-magic1-codecs", "390-follower"]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Several partitions, one of which lost its time indexes."""
    home = tmp_path / "logs"
    for name in CASES:
        case = PartitionCase(name)
        shutil.copytree(case.closed(tmp_path / "unpacked"), home / f"{name}-0")
    (home / "meta.properties").touch()
    for path in (home / "410-plain-mono-0").glob("*.timeindex"):
        path.unlink()
    return home


def page_and_json(path: Path) -> tuple[Html, dict[str, Any], Report]:
    health = kafka.report(path, index_interval_bytes=1000)
    html = Html(render(page_of(health.to_dict(), health.verify, CATALOGUE, ["mqindex", "repair", str(path)])))
    return html, json.loads(json.dumps(health.to_dict())), health.verify


def check(path: Path) -> tuple[Html, dict[str, Any]]:
    """Every number is a fact of the JSON, or a text of it."""
    html, document, report = page_and_json(path)
    check_facts(html, document)
    assert numbers_of_no_fact(html, document, report) == []
    requires_accessible(html)
    requires_nothing_from_elsewhere(html)
    assert len(html.source.encode()) <= MAX_BYTES
    return html, document


def check_facts(html: Html, document: dict[str, Any]) -> None:
    for fact in html.all("data"):
        value = at(document, fact.attributes["data-at"])
        assert fact.attributes["value"] == str(value)
        shown = {form(value) for form in FORMS if isinstance(value, int | float)}
        assert fact.text == "not known" if value is None else fact.text in shown, fact.attributes


def numbers_of_no_fact(html: Html, document: dict[str, Any], report: Report) -> list[str]:
    known = {*strings(document), counts(report.findings), work_done(report), *report.actions}
    known |= {text.moment(document["read"]["made_at"]), *(str(value) for _, value in settings(report))}
    known |= {answer for _, answer in verdict(report.start, report.path)} if report.start else set()
    for group in grouped(report.findings, CATALOGUE, report.path):
        known |= {group.title, group.meaning, group.hint or "", *group.places}
    return numbers_in(html.source, known)


def test_every_number_of_a_log_dirs_page_is_that_of_the_json(log_dir: Path) -> None:
    html, document = check(log_dir)
    assert len(html.all("data")) > 300
    assert len(document["partitions"]) == len(CASES)


@pytest.mark.parametrize("name", CASES)
def test_every_number_of_a_partitions_page_is_that_of_the_json(name: str, log_dir: Path) -> None:
    check(log_dir / f"{name}-0")


def test_one_segment_has_a_page(log_dir: Path) -> None:
    html, _ = check(sorted((log_dir / "410-codecs-0").glob("*.log"))[1])
    assert "Kafka segment" in html.source


def test_lost_time_indexes_are_said_plainly(log_dir: Path) -> None:
    html, document = check(log_dir)
    assert html.all("h2")[0].text.startswith("Not clean: 3 errors")
    assert "Time indexes are lost" in html.source
    assert "Partition 410-plain-mono-0" in html.source  # the one with errors is in detail
    assert sum(one["time_indexes_lost"] for one in document["partitions"]) == 3
    assert "Time indexes are lost" not in check(log_dir / "410-codecs-0")[0].source


def test_an_empty_log_dir_an_empty_partition_and_a_refused_log_have_pages(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    assert "The log dir has no partition." in check(tmp_path)[0].source
    writer = PartitionWriter(tmp_path / "empty-0")
    writer.close()
    check(tmp_path)
    log = next((tmp_path / "empty-0").glob("*.log"))
    writer = PartitionWriter(tmp_path / "torn-0")
    writer.append([KafkaRecord(b"v", b"k", FIRST_TIME)])
    writer.append_bytes(b"\xff" * 200, 5, FIRST_TIME)
    writer.close()
    check(tmp_path)
    log.unlink()
    check(tmp_path / "torn-0")


def test_hostile_names_and_times_are_shown_as_text(tmp_path: Path) -> None:
    evil = "<script>alert('x')<&\u202e\x01$a_{1}$"
    for number in range(120):
        writer = PartitionWriter(tmp_path / f"{evil}{'t' * 90}-{number}")
        for offset in range(number % 3 + 1):
            writer.append(
                [KafkaRecord(b"v", b"k", 2**62 if number % 2 else FIRST_TIME + offset)],
                producer_id=2**62 + number, base_sequence=0,
            )  # fmt: skip
        writer.close()
    html, document, _ = page_and_json(tmp_path)
    check_facts(html, document)
    assert (len(document["partitions"]), document["others"]["partitions"]) == (100, 20)
    requires_accessible(html)
    requires_nothing_from_elsewhere(html)
    assert len(html.source.encode()) <= MAX_BYTES
    assert not re.search(r"[\x01\u202e]", html.source)
    assert "&lt;script&gt;" in html.source and "<script" not in html.source


@pytest.mark.parametrize("base_offset", [10**18, 2**62])
@pytest.mark.parametrize("batches", [1, 5])
def test_offsets_that_floats_do_not_tell_apart_have_a_page(base_offset: int, batches: int, tmp_path: Path) -> None:
    """It ended in "math domain error": the ends of the axis were the same float."""
    writer = PartitionWriter(tmp_path / "far-0", base_offset)
    for number in range(batches):
        writer.append([KafkaRecord(timestamp=FIRST_TIME + number)])
    writer.close()
    (picture,) = [one for one in check(tmp_path / "far-0")[0].all("svg") if "partition-times" in str(one.attributes)]
    heights = [float(one.attributes["y"]) for one in picture.inside if one.tag == "text"]
    assert len(heights) >= 3
    assert all(0 <= height <= 220 for height in heights)
    places = re.findall(r"M[0-9.]+ ([0-9.]+)h0", "".join(one.attributes.get("d", "") for one in picture.inside))
    assert len(places) == 2 * batches
    assert len(set(places)) == 1, "batches that no float tells apart are drawn apart"
