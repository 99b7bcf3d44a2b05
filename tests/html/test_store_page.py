"""The page of a RocketMQ store: every number of it is in the report's JSON, whatever the store is like."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from mqindex import rocketmq
from mqindex.html import text
from mqindex.html.render import MAX_BYTES, render
from mqindex.html.rocketmq import page_of
from mqindex.report import Obstacle, Report
from mqindex.rocketmq.catalogue import CATALOGUE
from mqindex.wording.findings import grouped
from mqindex.wording.reports import counts, settings, work_done
from mqindex.wording.verdict import verdict
from tests.support.golden import case
from tests.support.html_page import Html, at, requires_accessible, requires_nothing_from_elsewhere
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

FORMS = (
    text.count,
    text.size,
    text.moment,
    text.times,
    text.span,
    text.days,
    str,
    lambda value: text.count(round(value)),
)
STORES = ["basic-493", "tx-delay-lmq-493", "rolls-493", "killed-lost-493", "crc-v2-lmq-550"]


def unpack(name: str, place: Path) -> Path:
    chosen = case(name)
    return chosen.unpack_after(place) if name == "killed-lost-493" else chosen.unpack(place)


def page_and_json(root: Path) -> tuple[Html, dict[str, Any], Report]:
    health = rocketmq.report(root)
    html = Html(render(page_of(health.to_dict(), health.verify, CATALOGUE, ["mqindex", "repair", str(root)])))
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
    return numbers_in(without_places(html.source), known_texts(document, report))


def numbers_in(source: str, known: set[str]) -> list[str]:
    """Words with digits outside of facts and pictures, in pieces of text that are not known as a whole."""
    shown = {text.visible(each, 2000) for each in known} | {text.visible(each) for each in known}
    sentences = sorted((each for each in shown if " " in each), key=len, reverse=True)
    left = []
    for piece in re.split(r"<(data|svg|style|title)\b.*?</\1>|<[^>]*>", source, flags=re.S)[::2]:
        words = re.sub(r"and \d+ more", "", unescape(piece)).strip()
        if words in shown:
            continue
        for each in sentences:
            words = words.replace(each, " ")
        left += [word for word in words.split() if re.search(r"\d", word) and word.rstrip(".") not in shown]
    return left


def without_places(source: str) -> str:
    """The heat map's table without its titles: places of cells, which the numbers beside them point at too."""

    def of_table(table: re.Match[str]) -> str:
        titles = re.findall(r"<th\b[^>]*>(.*?)</th>", table[0], re.S)
        places = [re.sub(r"<.*?>", "", each).strip() for each in titles]
        rows = len(places) - 17
        assert places == ["stretch", *(f"+{at}" for at in range(16)), *(str(16 * row) for row in range(rows))]
        return re.sub(r"<th\b.*?</th>", "", table[0], flags=re.S)

    return re.sub(r"<caption>Slots in use in each stretch</caption>.*?</table>", of_table, source, flags=re.S)


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


def test_settings_that_nothing_shows_stand_in_the_commands(tmp_path: Path) -> None:
    root = unpack("basic-493", tmp_path)
    shutil.rmtree(root / "index")
    html, _, _ = page_and_json(root)
    (code,) = [one.text.split("\n") for one in html.all("pre")]
    assert code[1] == f"mqindex repair {root} --broker-conf FILE"


def test_what_no_repair_mends_is_said_before_the_repair(tmp_path: Path) -> None:
    root = unpack("killed-lost-493", tmp_path)
    one, other = sorted((root / "commitlog").iterdir())[1:3]
    content = one.read_bytes(), other.read_bytes()
    other.write_bytes(content[0])
    one.write_bytes(content[1])
    html, _, report = page_and_json(root)
    assert report.actions
    said = "No repair mends these errors; the findings say what does. See to them first: log-foreign (2 times)"
    assert said in [one.text for one in html.all("p")]
    assert html.source.index(said) < html.source.index("What to do")


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
    cells = " ".join(cell.text for cell in html.all("td", "th"))
    said = re.findall(r"… \(([\d,]+) characters\)", cells)
    assert said
    assert {int(each.replace(",", "")) for each in said} <= set(lengths(document))


def lengths(value: Any) -> Iterator[int]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from lengths(one)
    if isinstance(value, dict) and "text" in value:
        yield value["length"]


def test_a_start_of_which_nothing_is_known_has_no_green_tick(tmp_path: Path) -> None:
    health = rocketmq.report(unpack("basic-493", tmp_path))
    assert health.verify.start is not None
    unknown = replace(
        health.verify.start, starts=None, obstacles=(Obstacle("consumequeue", "it may be", "5.0 to 5.4"),)
    )
    page = page_of(health.to_dict(), replace(health.verify, start=unknown), CATALOGUE, [])
    assert page.verdict.tone == "info"
    assert page.verdict.headline.endswith("; whether a broker starts is not known")
    assert page_of(health.to_dict(), health.verify, CATALOGUE, []).verdict.tone == "good"


def test_pictures_are_whole_on_a_narrow_screen(tmp_path: Path) -> None:
    style = page_and_json(unpack("basic-493", tmp_path))[0].source
    assert re.search(r"\nsvg \{[^}]*min-width", style) is None
