"""Docstrings of this package as Markdown, for the reference that `./dev docs` builds.

griffe reads the package and mkdocstrings draws it. What they do not know stands here: sections as this package writes
them (`name : text`), examples without a fence, and names in backticks, which lead to where they are described. A name
that begins with `mqindex.` must lead somewhere.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import griffe

PUBLIC = [f"mqindex.{room}" for room in ("errors", "engines", "report", "health", "rocketmq", "kafka", "spark")]
PUBLIC += ["mqindex", "mqindex.columns.columns", "mqindex.columns.hits"]
OPTIONS = {"StoreArguments": "mqindex.rocketmq.options", "PartitionArguments": "mqindex.kafka.options"}

_SIGNATURE = re.compile(r"\A\w+\(self.*\)\n\n")  # Cython puts it first
_HEADING_3 = re.compile(r"^###(?= )", re.MULTILINE)  # below the page's own
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
_SOURCE = re.compile(r"(?<!\n)\n(?=Source\b)|(?<=\. )(?=Source(?: of the rules)?: )")
_LISTS = {"Parameters", "Returns", "Yields", "Raises", "Attributes"}
_NAME = re.compile(r"(?<![`\[])`([A-Za-z_][\w.]*)(\(\))?`(?!`)")


class Docstrings(griffe.Extension):
    """Rewrites each docstring once, when the whole package is known."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: object) -> None:
        if pkg.path != "mqindex":
            return
        loader.resolve_aliases()
        self.package = pkg
        self.homes: dict[str, list[str]] = {name: [home] for name, home in OPTIONS.items()}
        described = list(_described(pkg))
        for page in PUBLIC:
            module = _module(pkg, page)
            for name in map(str, module.exports or []):
                self.homes.setdefault(name, []).append(page)
                found = module.members.get(name)
                if (
                    found is not None and found.is_module and name in found.members
                ):  # `verify`: a function of the module `verify`
                    module.members[name] = griffe.Alias(name, found.members[name], parent=module)
        for one in described:
            assert one.docstring is not None
            text = _HEADING_3.sub("##", _SIGNATURE.sub("", one.docstring.value))
            if text.startswith("Internal: ") and one.parent is not None:  # of a compiled base, for its Python class
                del one.parent.members[one.name]
            one.docstring.value = self._to_markdown(text, one)
            if isinstance(one, griffe.Class) and "open" in one.all_members:
                _without_constructor(one)

    def _to_markdown(self, docstring: str, owner: griffe.Object) -> str:
        parts = _HEADING.split(_SESSION.sub(lambda session: f"```pycon\n{session[0]}\n```", docstring))
        text = parts[0]
        for heading, content in zip(parts[1::2], parts[2::2], strict=True):
            text += f"\n**{heading}**\n\n{_as_list(content, heading) if heading in _LISTS else content}\n"
        pieces = _FENCED.split(text)
        pieces[::2] = [self._linked(_SOURCE.sub("\n\n", piece), owner) for piece in pieces[::2]]
        return "".join(pieces)

    def _linked(self, text: str, owner: griffe.Object) -> str:
        def link(match: re.Match[str]) -> str:
            target = self._target(match[1], owner)
            return match[0] if target is None else f"[{match[0]}][{target}]"

        paragraphs = text.split("\n\n")  # a source names the broker's classes, some like ours
        return "\n\n".join(one if one.startswith("Source") else _NAME.sub(link, one) for one in paragraphs)

    def _target(self, name: str, owner: griffe.Object) -> str | None:
        if name.startswith("mqindex."):
            return name
        first = name.partition(".")[0]
        within = owner if owner.is_class else owner.parent
        if within is not None and within.is_class and _has_docstring(within, name):
            return f"{self._page(within.name, owner)}.{within.name}.{name}" if within.name in self.homes else None
        if first not in self.homes or first == owner.name:
            return None
        page = self._page(first, owner)
        return f"{page}.{name}" if first == name or _has_docstring(_module(self.package, page), name) else None

    def _page(self, name: str, owner: griffe.Object) -> str:
        """Where a public name is described; the same broker's, if both have it."""
        homes = self.homes[name]
        return next((home for home in homes if owner.path.startswith(home) and home != "mqindex"), homes[0])


def _module(package: griffe.Module, path: str) -> griffe.Module:
    found = package if path == package.path else package[path.removeprefix("mqindex.")]
    assert isinstance(found, griffe.Module)
    return found


def _described(owner: griffe.Object) -> Iterator[griffe.Object]:
    if owner.docstring is not None:
        yield owner
    for member in owner.members.values():
        if isinstance(member, griffe.Object):
            yield from _described(member)


def _without_constructor(cls: griffe.Class) -> None:
    """What is opened is not made otherwise."""
    for each in [cls, *cls.mro()]:
        each.members.pop("__init__", None)


def _has_docstring(owner: griffe.Object, name: str) -> bool:
    try:
        return owner[name].has_docstring
    except (KeyError, griffe.AliasResolutionError):
        return False


def _as_list(section: str, heading: str) -> str:
    """`name : text` with indented lines below it, as a list of Markdown; types and errors are linked, names are not."""
    lines = []
    for item in re.split(r"\n(?=\S)", section.strip()):
        name, colon, text = item.partition(" : ")
        if not colon or "\n" in name:
            name, _, text = item.partition("\n")
        text = re.sub(r"\A([^\n.]{1,50})\n\s+(?=[A-Z])", r"\1. ", text)  # a type, then a sentence
        if re.fullmatch(r"[\w.*, ]+", name):
            form = "`{}`" if heading in ("Raises", "Returns", "Yields") else "<code>{}</code>"
            name = ", ".join(form.format(one) for one in name.split(", "))
        lines.append(f"- {name}: {inspect.cleandoc(' ' + text)}" if text else f"- {name}")
    return "\n".join(re.sub(r"\n\s*", "\n    ", line) for line in lines) + "\n"
