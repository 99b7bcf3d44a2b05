"""The page of a RocketMQ store: every number of it is in the report's JSON, whatever the store is like."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from mqindex import rocketmq
from mqindex.html import text
from mqindex.html.render import MAX_BYTES, render
from mqindex.html.rocketmq import page_of
from mqindex.report import Report
from mqindex.rocketmq.catalogue import CATALOGUE
from mqindex.wording.findings import grouped
from mqindex.wording.reports import counts, settings, work_done
from mqindex.wording.verdict import verdict
from tests.support.golden import case
from tests.support.html_page import Html, at, requires_accessible, requires_nothing_from_elsewhere
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

FORMS = (text.count, text.size, text.moment, text.times, str, lambda value: text.count(round(value)))
STORES = ["basic-493", "tx-delay-lmq-493", "rolls-493", "killed-lost-493", "crc-v2-lmq-550"]


def unpack(name: str, place: Path) -> Path:
    chosen = case(name)
    return chosen.unpack_after(place) if name == "killed-lost-493" else chosen.unpack(place)


def page_and_json(root: Path) -> tuple[Html, dict[str, Any], Report]:
    health = rocketmq.report(root)
    html = Html(render(page_of(health, CATALOGUE, ["mqindex", "repair", str(root)])))
    return html, json.loads(json.dumps(health.to_dict())), health.verify


@pytest.mark.parametrize("name", STORES)
def test_every_number_of_the_page_is_that_of_the_json(name: str, tmp_path: Path) -> None:
    html, document, report = page_and_json(unpack(name, tmp_path))
    facts = html.all("data")
    assert len(facts) > 100
    for fact in facts:
        value = at(document, fact.attributes["data-at"])
        assert fact.attributes["value"] == str(value)
        assert fact.text == "not known" if value is None else fact.text in {form(value) for form in shown_as(value)}
    assert numbers_of_no_fact(html, document, report) == []


def shown_as(value: Any) -> Iterator[Any]:
    return (form for form in FORMS if isinstance(value, int | float))


def numbers_of_no_fact(html: Html, document: dict[str, Any], report: Report) -> list[str]:
    """Words with digits that are neither facts, nor text of the JSON, nor what the shell says of the same report."""
    source = re.sub(r"<(data|svg|style|title)\b.*?</\1>", " ", html.source, flags=re.S)
    left = Html(re.sub(r"<svg.*?</svg>", " ", source, flags=re.S)).all("body")[0].text
    for known in sorted(known_texts(document, report), key=len, reverse=True):
        left = left.replace(known, " ")
    left = re.sub(r"and \d+ more", "", left)
    places = {str(number) for number in range(256)} | {f"+{number}" for number in range(16)}  # of the heat map's table
    return [word for word in left.split() if re.search(r"\d", word) and word not in places]


def known_texts(document: Any, report: Report) -> set[str]:
    known = set(strings(document)) | {text.moment(time) for time in bins(document)} | {counts(report.findings)}
    known |= {text.moment(document["read"]["made_at"]), work_done(report), *report.actions}
    known |= {str(value) for _, value in settings(report)}
    known |= {answer for _, answer in verdict(report.start, report.path)} if report.start else set()
    for group in grouped(report.findings, CATALOGUE, report.path):
        known |= {group.title, group.meaning, group.hint or "", *group.places}
    return known


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def bins(value: Any) -> Iterator[int]:
    """When each bin of each series begins."""
    if isinstance(value, dict) and "width" in value:
        yield from (value["start"] + i * value["width"] for i in range(len(value["counts"])))
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from bins(one)


@pytest.mark.parametrize("name", STORES)
def test_the_page_is_accessible_alone_and_small(name: str, tmp_path: Path) -> None:
    html, _, _ = page_and_json(unpack(name, tmp_path))
    requires_accessible(html)
    requires_nothing_from_elsewhere(html)
    assert len(html.source.encode()) <= MAX_BYTES


def test_a_damaged_store_says_what_to_type(tmp_path: Path) -> None:
    root = unpack("killed-lost-493", tmp_path).rename(tmp_path / "a store; rm *")
    html, _, _ = page_and_json(root)
    (code,) = [one.text.split("\n") for one in html.all("pre")]
    assert code[:2] == [f"mqindex repair '{root}' --dry-run", f"mqindex repair '{root}'"]
    assert html.all("h2")[0].text == "Not clean: 1 error"


def test_what_is_left_of_a_store_is_still_a_page(tmp_path: Path) -> None:
    root = unpack("basic-493", tmp_path)
    shutil.rmtree(root / "commitlog")
    html, document, _ = page_and_json(root)
    assert document["coverage"] is None
    assert "Not clean" in html.all("h2")[0].text
    requires_accessible(html)


@pytest.mark.parametrize("part", ["index", "consumequeue", "config"])
def test_a_store_without_a_part_is_still_a_page(part: str, tmp_path: Path) -> None:
    root = unpack("basic-493", tmp_path)
    shutil.rmtree(root / part)
    requires_accessible(page_and_json(root)[0])


def test_an_empty_log_is_still_a_page(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    html, _, _ = page_and_json(tmp_path)
    assert "The log holds no message." in html.source
    requires_accessible(html)


def test_hostile_names_of_fifty_topics_are_shown_as_text_in_a_small_page(tmp_path: Path) -> None:
    evil = "<script>alert('x')</script>\u202e\x00$a_{1}$"
    messages = [
        LogMessage(
            f"{number}{evil}{'t' * 60}"[:100],
            keys=f"{evil}{'k' * 20_000}",
            tags=f"{evil}{number % 9}{'g' * 9000}",
            body=b"x" * number,
            queue_id=number % 7,
            store_timestamp=FIRST_TIME + number * 60_000,
        )
        for number in range(60)
        for _ in range(3)
    ]
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 20)
    writer.write(*messages)
    (tmp_path / "config").mkdir()
    offsets = {
        f"{number}{evil}@group{evil}{'g' * 500}": {str(queue): queue for queue in range(20)} for number in range(90)
    }
    (tmp_path / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    html, document, _ = page_and_json(tmp_path)
    assert len(document["topics"]["topics"]) == 50
    assert len(html.source.encode()) <= 500_000
    requires_nothing_from_elsewhere(html)
    requires_accessible(html)
    assert not re.search(r"[\x00\u202e]", html.source)
    assert "&lt;script&gt;" in html.source
