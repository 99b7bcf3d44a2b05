"""From a page's model to its HTML, by a template. Every text goes through one function, which escapes and cuts."""

from __future__ import annotations

import importlib.resources
from functools import cache
from typing import Any

from mqindex.html.drawing import require_library
from mqindex.html.page import Page
from mqindex.html.palette import DARK, LIGHT, css_variables
from mqindex.html.text import Name, visible

__all__ = ["MAX_BYTES", "TEXT", "prepare", "render"]

MAX_BYTES = 1_000_000
TEXT = 2000  # characters of one text: names are shorter, and a sentence about one may be long


def render(page: Page) -> str:
    """The page as one HTML document that loads nothing.

    >>> from mqindex.html.page import Note, Section, Verdict
    >>> page = Page("RocketMQ store", "<store>", "now", Verdict("good", "All is well", [("lock", "free")]))
    >>> page.add([Section("a", "A section", [Note("x\u202ey")])])
    >>> html = render(page)
    >>> "<store>" in html, "&lt;store&gt;" in html, r"x\\u202ey" in html
    (False, True, True)
    """
    return str(prepare().render(page=page))


@cache
def prepare() -> Any:
    """Load the drawing library and the page's template: most of the time of a process's first page."""
    require_library()
    import jinja2
    from markupsafe import Markup

    def gate(value: Any) -> Any:
        return value if isinstance(value, Markup) else visible(value, TEXT)

    def name(value: Any) -> str:
        return value if isinstance(value, Name) else visible(value)

    templates = importlib.resources.files("mqindex.html") / "templates"
    files = {one.name: one.read_text(encoding="utf-8") for one in templates.iterdir() if one.name.endswith(".jinja")}
    environment = jinja2.Environment(
        autoescape=True,
        finalize=gate,
        loader=jinja2.DictLoader(files),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["name"] = name
    environment.filters["as_is"] = Markup  # of pictures, which our own code drew
    environment.globals["colours"] = {"light": Markup(css_variables(LIGHT)), "dark": Markup(css_variables(DARK))}
    environment.get_template("blocks.jinja")
    return environment.get_template("page.jinja")
