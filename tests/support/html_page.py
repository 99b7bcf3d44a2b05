"""An HTML page, taken apart: what its tests ask of it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input", "col"}


@dataclass
class Element:
    """An element, the text directly and indirectly in it, and what is around it."""

    tag: str
    attributes: dict[str, str]
    around: tuple[Element, ...]
    text: str = ""
    inside: list[Element] = field(default_factory=list)

    def within(self, tag: str) -> bool:
        return any(one.tag == tag for one in self.around)


class Html(HTMLParser):
    """The elements of a page in order; every one that is opened must be closed, by its own name."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(source)
        self.close()
        assert self._open == [], self._open[-1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        for one in self._open:
            one.inside.append(element)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}>"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for one in self._open:
            one.text += data

    def all(self, *tags: str) -> list[Element]:
        return [one for one in self.elements if one.tag in tags]

    @property
    def ids(self) -> list[str]:
        return [one.attributes["id"] for one in self.elements if "id" in one.attributes]


def at(document: Any, pointer: str) -> Any:
    """What a JSON pointer leads to; None: nothing is there."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            document = document[int(name)] if int(name) < len(document) else None
        else:
            document = None if document is None else document.get(name)
    return document


def requires_accessible(html: Html) -> None:
    """What can be said of a page's structure without a browser."""
    assert len(set(html.ids)) == len(html.ids), "an id is there twice"
    (page,) = html.all("html")
    assert page.attributes["lang"] == "en"
    assert all(len(html.all(tag)) == 1 for tag in ("main", "h1", "nav", "header", "footer"))
    levels = [int(one.tag[1]) for one in html.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    for picture in html.all("svg"):
        assert picture.attributes["role"] == "img"
        names = picture.attributes["aria-labelledby"].split()
        titles = {one.attributes.get("id"): one.text for one in picture.inside if one.tag in ("title", "desc")}
        assert all(titles[name].strip() for name in names)
    for table in html.all("table"):
        assert any(one.tag == "caption" and one.text.strip() for one in table.inside)
        assert all(one.attributes.get("scope") in ("col", "row") for one in table.inside if one.tag == "th")
    for group in html.elements:
        if group.attributes.get("role") == "group":
            assert group.attributes["tabindex"] == "0"
            assert group.attributes.get("aria-label") or group.attributes["aria-labelledby"] in html.ids
    for link in html.all("a"):
        assert link.text.strip()
        assert link.attributes["href"].removeprefix("#") in html.ids


def requires_nothing_from_elsewhere(html: Html) -> None:
    """The page asks for no other file, and runs no script."""
    assert not html.all("script", "link", "iframe", "object", "embed", "base", "form")
    for one in html.elements:
        assert not [name for name in one.attributes if name.startswith("on") or name in ("src", "srcset")]
        for name in ("href", "xlink:href"):
            assert one.attributes.get(name, "#").startswith("#")
    styles = [one.text for one in html.all("style")] + [one.attributes.get("style", "") for one in html.elements]
    assert not [style for style in styles if "@import" in style or re.search(r"url\((?!#)", style)]
    assert "http" not in html.source.replace('http-equiv="Content-Security-Policy"', "")
