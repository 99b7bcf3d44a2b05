"""From a page's model to its HTML, by a template. Every text goes through one function, which escapes and cuts."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading
from functools import cache
from typing import Any

from mqindex._needs import needing
from mqindex.html.drawing import WIDTH
from mqindex.html.page import Page
from mqindex.html.palette import DARK, LIGHT, css_variables
from mqindex.html.text import Name, visible

MAX_BYTES = 1_000_000
_NEEDS = "a page needs jinja2: pip install 'mqindex[html]'"
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
    return str(_template().render(page=page))


def require_installed() -> None:
    """`ImportError` that says what to install, if it is missing; nothing is loaded."""
    if importlib.util.find_spec("jinja2") is None:
        raise ImportError(_NEEDS, name="jinja2")


def prepare() -> None:
    """Begin to load the template, in a thread: it takes as long as checking some GiB of log, which leaves it room."""

    def load() -> None:
        with contextlib.suppress(Exception):  # `render` comes to the same, and raises it
            _template()

    with contextlib.suppress(RuntimeError):  # no thread more may be started: `render` loads it
        threading.Thread(target=load, name="mqindex-page").start()


@cache
def _template() -> Any:
    with needing(_NEEDS, "jinja2"):
        import jinja2
        from markupsafe import Markup

    def gate(value: Any) -> Any:
        return value if isinstance(value, Markup) else visible(value, TEXT)

    def name(value: Any) -> str:
        return value if isinstance(value, Name) else visible(value)

    environment = jinja2.Environment(
        autoescape=True,
        auto_reload=False,
        finalize=gate,
        loader=jinja2.FileSystemLoader(os.path.join(os.path.dirname(__file__), "templates")),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["name"] = name
    environment.filters["as_is"] = Markup  # of pictures, which our own code drew
    environment.globals["width"] = WIDTH
    environment.globals["colours"] = {"light": Markup(css_variables(LIGHT)), "dark": Markup(css_variables(DARK))}
    environment.get_template("blocks.jinja")
    return environment.get_template("page.jinja")
