"""The building blocks of a page: hostile text, accessibility, colours, pictures, size."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable

import pytest

pytest.importorskip("jinja2")

from mqindex.html import figures
from mqindex.html import render as render_module
from mqindex.html.page import (
    Actions,
    Column,
    Commands,
    Facts,
    Fields,
    Figure,
    Findings,
    Note,
    Page,
    Section,
    Table,
    Verdict,
)
from mqindex.html.palette import DARK, LIGHT, SERIES, luminance
from mqindex.html.render import prepare, render
from mqindex.html.text import count, size
from mqindex.report import Finding
from mqindex.wording.findings import grouped
from tests.support.html_page import Html, at, requires_accessible, requires_nothing_from_elsewhere

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></svg><script>",
    "right\u202eto left\u2066",
    "nul\x00bell\x07escape\x1b[2J",
    "$\\frac{a}{b}$ {{ 7 * 7 }} {% raw %}",
    "lone \udc80 surrogate",
    "ten megabytes \u202e\x1b[2J" + "x" * 10_000_000,
    "",
    "顧客-注文 😀 é",
]
DOCUMENT = {"numbers": [1234567, 2**62, 0, 0.25], "names": {"a/b~c": 7}}
FACTS = Facts(DOCUMENT)


def page_with(text: str) -> Page:
    """Every kind of block, with this text wherever a text can be."""
    made = Table(text, (Column(text), Column("bytes", number=True)), [(text, FACTS("numbers", 0, form=size))] * 50)
    hours = [(1_700_000_000_000 + i * 3_600_000, float(i)) for i in range(5)]
    pictures = [
        figures.time_bars("p1", 1_700_000_000_000, 60_000, [("s1", [1, 2, 3]), ("s2", [0, 5, 1])], size),
        figures.time_line("p2", [("s1", hours), ("bad", [(2**62, 1.0)])]),
        figures.bars("p3", [text, text], [3, 4], ideal=[2.5, 1.5]),
        figures.ranked("p4", [text, "b"], [5, 0]),
        figures.stretches("p5", [(text, [figures.LinePart(3, 3, "bad")])], 0, 100, size),
        figures.heat("p6", [0, 1, 2, 3] * 40, 3),
    ]
    page = Page(
        text, text, text, Verdict("bad", text, [(text, text)], [Commands(text, [text]), Actions(text, [text] * 30)])
    )
    findings = [Finding("error", "bad-slot", text, 3, text, text, text, text) for _ in range(9)]
    page.add(
        [
            Section(
                "blocks", text, [Note(text, "warn"), Fields([(text, text), ("n", FACTS("names", "a/b~c"))]), made], text
            ),
            Section("found", text, [Findings(tuple(grouped(findings, {}, "/store")))]),
            Section("drawn", text, [Figure(one, text, text, [("s1", text)], made) for one in pictures]),
            Section("empty", "nothing to say", []),
        ]
    )
    return page


def test_what_is_cut_on_a_narrow_screen_shows_that_it_goes_on() -> None:
    """Half a picture of coverage looked like the whole one."""
    on_screen, _, printed = render(page_with("x")).partition("@media print")
    (rule,) = re.findall(r"\.scroll \{([^}]*)\}", on_screen)
    assert "overflow-x: auto" in rule
    assert [rule.count(word) for word in (" local", " scroll")] == [2, 2]  # covers that go with the picture, shadows
    assert ".scroll { overflow: visible; background: none; }" in printed


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_hostile_text_is_shown_as_text_and_cut(text: str) -> None:
    source = render(page_with(text))
    assert len(source.encode()) < 400_000
    html = Html(source)
    requires_nothing_from_elsewhere(html)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", source)
    assert len(html.all("style")) == 1
    assert not html.all("img")
    if "$" in text:
        drawn = [one.text for one in html.all("text") if one.within("svg")]
        assert text[:28] in [one.strip().split("… (")[0] for one in drawn], "a formula was drawn"
    if len(text) > 1000:
        assert f"… ({len(text):,} characters)" in source


@pytest.mark.parametrize("text", ["a plain title", "<b>"])
def test_the_structure_is_accessible(text: str) -> None:
    requires_accessible(Html(render(page_with(text))))


def test_a_section_with_nothing_to_say_is_left_out() -> None:
    assert "empty" not in Html(render(page_with("x"))).ids


def test_every_fact_says_where_it_is_from() -> None:
    facts = Html(render(page_with("x"))).all("data")
    assert facts
    for fact in facts:
        assert str(at(DOCUMENT, fact.attributes["data-at"])) == fact.attributes["value"]


def test_what_is_not_known_is_said() -> None:
    fact = FACTS("numbers", 17)
    assert (fact.value, fact.shown) == (None, "not known")


def test_a_long_table_says_how_much_it_leaves_out() -> None:
    assert "and 10 more" in render(page_with("x"))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_pictures_have_the_contrast_of_wcag_aa(colours: dict[str, str]) -> None:
    assert set(LIGHT) == set(DARK)
    texts = ["ink", "muted", "good", "warn", "bad", "info"]
    for text, ground in itertools.product(texts, ["paper", "raised"]):
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for tone in ("good", "warn", "bad", "info"):
        assert contrast(colours[tone], colours[f"{tone}-raised"]) >= 4.5, tone
        assert contrast(colours["ink"], colours[f"{tone}-raised"]) >= 4.5, tone
    for tone in SERIES:
        assert contrast(colours[tone], colours["paper"]) >= 3, tone


def test_a_picture_is_of_the_palette_and_of_little_text() -> None:
    pictures = [one.picture for one in page_with("x").sections[2].blocks if isinstance(one, Figure)]
    for picture in pictures:
        assert not re.search(r"#[0-9a-f]{6}", picture.content)
        assert "var(--" in picture.content
        assert all(name.startswith(f"{picture.name}-") for name in re.findall(r'\bid="([^"]*)"', picture.content))
        assert len(picture.content) < 30_000
        assert not re.search(r"\d\.\d\d", picture.content)


@pytest.mark.parametrize("most", [7, 14_221_744, 999_999_999_999])
def test_the_labels_of_an_axis_have_room(most: int) -> None:
    """The first digit of 10,000,000 was outside of the picture."""
    for picture in (
        figures.bars("n", ["a", "b"], [3, most]),
        figures.time_line("n", [("s1", [(10**12, 3), (10**12 + 60_000, most)])]),
        figures.time_bars("n", 10**12, 1000, [("s1", [3, most])]),
    ):
        ends = re.findall(r'text-anchor: end[^"]*" x="([\d.]+)"[^>]*>([\d,]+)<', picture.content)
        assert len(ends) >= 2
        assert all(float(x) >= 7 * len(label) - 2 * label.count(",") for x, label in ends), ends


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("high", [0.001, 0.106, 1, 1.06, 3.18, 7.42, 10.6, 999.9, 1000, 14_221_744.9, 2.0**63])
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_the_values_of_an_axis_are_few_and_round(high: float, share: float, whole: bool) -> None:
    low = high * share
    values = figures._round_values(low, high, whole=whole)
    assert len(values) <= 5
    assert all(low <= value <= high for value in values)
    steps = {f"{step:.6e}" for step in (after - before for before, after in itertools.pairwise(values))}
    assert len(steps) <= 1
    if whole:
        assert all(value.is_integer() for value in values)
    else:
        assert len(values) >= 2
        assert steps <= {
            f"{digits}e{step[-3:]}" for step in steps for digits in ("1.000000", "2.000000", "2.500000", "5.000000")
        }


@pytest.mark.parametrize("form", [size, count])
@pytest.mark.parametrize("value", [1, 2**53 + 1, 2**60, 2**63 - 1])
@pytest.mark.parametrize("spread", [0, 1, 100])
def test_large_numbers_that_hardly_differ_have_a_picture(value: int, spread: int, form: Callable[[float], str]) -> None:
    """Offsets of a partition that began high: between its ends floats had no room."""
    points = [(10**12, value - spread), (10**12 + 60_000, value)]
    content = figures.time_line("n", [("s1", points)], form).content
    assert len(re.findall("text-anchor: end; fill: var\\(--muted\\)", content)) >= 2


def test_an_element_of_a_picture_is_as_it_should_be() -> None:
    """A dot is a line of no length with round ends; text that looks like markup stays text."""
    content = (
        figures.time_line("n", [("s1", [(10**12, 3), (10**12 + 4000, 5)])]).content
        + figures.ranked("n", ["<b>"], [7]).content
    )
    assert re.search(r'<path d="M[\d.]+ [\d.]+h0M[\d.]+ [\d.]+h0" style="[^"]*stroke-linecap: round" />', content)
    assert re.search(
        r'<path d="M[\d.]+ [\d.]+L[\d.]+ [\d.]+" style="fill: none; stroke: var\(--s1\); [^"]*" />', content
    )
    assert "&lt;b&gt;" in content


@pytest.mark.parametrize("least", [0, 1, 1000, 2**53, 2**62, 2**63 - 3])
@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_line_of_values_that_are_near_is_inside_its_picture(least: int, more: int) -> None:
    """Large offsets side by side have the same float, and an axis has to begin and end somewhere."""
    drawn = figures.time_line("n", [("s1", [(10**12, least), (10**12 + 4000, least + more)])]).content
    heights = [
        float(height)
        for height in re.findall(r'y="([^"]*)"|[ML][\d.]+ (-?[\d.]+)', drawn)
        for height in height
        if height
    ]
    assert len(heights) > 5
    assert all(0 <= height <= 220 for height in heights)
    assert ">-" not in drawn, "an offset is never below zero"


# ---- the template, loaded beside the work


def prepared() -> None:
    prepare()
    for thread in threading.enumerate():
        if thread.name == "mqindex-page":
            thread.join()


def test_the_template_is_loaded_beside_other_work() -> None:
    render_module._template.cache_clear()
    prepared()
    assert render_module._template.cache_info().currsize == 1


def test_a_template_that_cannot_be_loaded_is_an_error_of_render_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ImportError("a broken jinja2")

    monkeypatch.setattr(render_module, "_template", broken)
    prepared()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ImportError, match="a broken jinja2"):
        render(Page("RocketMQ store", "/store", "now", Verdict("good", "All is well", [])))
