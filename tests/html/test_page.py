"""The building blocks of a page: hostile text, accessibility, colours, pictures, size."""

from __future__ import annotations

import itertools
import logging
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from mqindex.html import figures
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
from mqindex.html.render import render
from mqindex.html.text import size
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
        figures.stretches("p5", [(text, [figures.Stretch(3, 3, "bad")])], 0, 100, size),
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
        assert len(ends) >= 3
        assert all(float(x) >= 7 * len(label) - 2 * label.count(",") for x, label in ends), ends


def test_a_font_without_a_character_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.ranked("p", ["\ue000 顧客 😀"], [1])


def test_drawing_leaves_nothing_in_the_users_home(tmp_path: Path) -> None:
    program = "import os; from mqindex.html import figures as f; f.heat('p', [1], 1); print(os.getenv('MPLCONFIGDIR'))"
    places = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], env=kept | places, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("None\n", "")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["tmp"]
    assert not logging.getLogger("matplotlib.font_manager").disabled
