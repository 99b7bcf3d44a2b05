"""Builds the API reference from the docstrings, and the manual pages, into `build/docs`. Run by `./dev docs`.

Any warning fails the build.

pdoc draws the pages. What it does not know stands here: NumPy sections as this package writes them (`name : text`),
links from a name in backticks to its page, and which members are for users. A name in backticks that begins with
`mqindex.`, or is a member of a public class, must lead somewhere.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pdoc.doc
import pdoc.render
import pdoc.render_helpers
from jinja2 import pass_context
from jinja2.runtime import Context

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "docs"
PAGES = {  # module -> its name in the list of pages
    "mqindex": "mqindex",
    "mqindex.rocketmq": "mqindex.rocketmq",
    "mqindex.kafka": "mqindex.kafka",
    "mqindex.spark": "mqindex.spark",
    "mqindex.engines": "mqindex.engines",
    "mqindex.report": "mqindex.report",
    "mqindex.health": "mqindex.health",
    "mqindex.errors": "mqindex.errors",
    "mqindex.rocketmq.options": "Store options",
    "mqindex.kafka.options": "Partition options",
    "mqindex.columns.columns": "Columns",
    "mqindex.columns.hits": "Hits",
    "mqindex.rocketmq.layout": "RocketMQ's files",
    "mqindex.kafka.layout": "Kafka's files",
}
ONLY = {  # of the module, what is for users
    "mqindex.rocketmq.options": "StoreArguments",
    "mqindex.kafka.options": "PartitionArguments",
}
INTERNAL = "Internal: "  # a docstring that begins so is of a name that other rooms of the library use, not users

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
_SOURCE = re.compile(r"(?<!\n)\n(?=Source\b)|(?<=\. )(?=Source(?: of the rules)?: )")
_LISTS = {"Parameters", "Returns", "Yields", "Raises", "Attributes"}
_NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(\(\))?`(?!`)")


class Names:
    """Where each name of the reference is described."""

    def __init__(self, modules: dict[str, pdoc.doc.Module]) -> None:
        self.modules = modules
        self.homes: dict[str, list[str]] = {}
        for page, module in modules.items():
            for member in module.members.values():
                self.homes.setdefault(member.name, []).append(page)

    def url(self, text: str, page: str, inside: str) -> str | None:
        """Where a name leads that stands on a page, in the docstring of `inside`; None: it is no name of ours."""
        for name in [f"{inside.partition('.')[0]}.{text}", text]:
            if place := self._place(page, name):
                return f"#{place}"
        if text in self.modules:
            return pdoc.render_helpers.relative_link(page, text)
        if text.startswith("mqindex."):
            homes = [home for home in self.modules if text.startswith(f"{home}.")]
            for home in sorted(homes, key=len, reverse=True):
                if place := self._place(home, text[len(home) + 1 :]):
                    return f"{pdoc.render_helpers.relative_link(page, home)}#{place}"
            warnings.warn(f"{page}, {inside or 'module'}: `{text}` leads nowhere", stacklevel=1)
            return None
        first, _, member = text.partition(".")
        for home in self.homes.get(first, []) if first[0].isupper() or len(self.homes.get(first, [])) == 1 else []:
            if place := self._place(home, text):
                return f"{pdoc.render_helpers.relative_link(page, home)}#{place}"
            if member and member == member.lower():
                warnings.warn(f"{page}, {inside or 'module'}: `{text}` leads nowhere", stacklevel=1)
        return None

    def _place(self, page: str, name: str) -> str | None:
        found = self.modules[page].get(name)
        if found is None or is_shown(found):
            return found and name
        return name.rpartition(".")[0]


def is_shown(member: pdoc.doc.Doc) -> bool:
    """Whether a member is for users: a field is said in its class's docstring, a constructor where nothing opens."""
    if member.name == "__init__":
        owner = getattr(sys.modules[member.modulename], member.qualname.partition(".")[0])
        return not hasattr(owner, "open") and not member.docstring.startswith(INTERNAL)
    if member.docstring.startswith((INTERNAL, "Alias for field")) or member.name.startswith("_"):
        return False
    return bool(member.docstring) or "." not in member.qualname


class Written(str):
    """An annotation as the source has it: `npt.ArrayLike` says more than what it stands for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def as_written(function: pdoc.doc.Function) -> inspect.Signature:
    signature = pdoc.doc._PrettySignature.from_callable(function.obj)

    def text(annotation: object) -> object:
        annotation = getattr(annotation, "__forward_arg__", annotation)  # of a NamedTuple
        return Written(annotation) if isinstance(annotation, str) else annotation

    parameters = [p.replace(annotation=text(p.annotation)) for p in signature.parameters.values()]
    returns = inspect.Signature.empty if function.name == "__init__" else text(signature.return_annotation)
    return signature.replace(parameters=parameters, return_annotation=returns)


def to_markdown(docstring: str, names: Names, page: str, inside: str) -> str:
    """A docstring of this package as Markdown, its names linked."""
    docstring = re.sub(r"\A\w+\(self.*\)\n\n", "", docstring)  # Cython puts the signature first
    parts = _HEADING.split(_SESSION.sub(lambda session: f"```pycon\n{session[0]}\n```", docstring))
    text = parts[0]
    for heading, content in zip(parts[1::2], parts[2::2], strict=True):
        text += f"\n###### {heading}\n\n{as_list(content, heading) if heading in _LISTS else content}\n"
    pieces = _FENCED.split(text)
    pieces[::2] = [linked(_SOURCE.sub("\n\n", piece), names, page, inside) for piece in pieces[::2]]
    return "".join(pieces)


def as_list(section: str, heading: str) -> str:
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
        lines.append(f"- **{name}**: {inspect.cleandoc(' ' + text)}" if text else f"- **{name}**")
    return "\n".join(re.sub(r"\n\s*", "\n  ", line) for line in lines) + "\n"


def linked(text: str, names: Names, page: str, inside: str) -> str:
    def link(match: re.Match[str]) -> str:
        url = names.url(match[1], page, inside)
        return match[0] if url is None else f"[{match[0]}]({url})"

    def link_paragraph(paragraph: str) -> str:
        if paragraph.startswith("Source"):  # it names the broker's classes, some like ours
            return re.sub(r"`(mqindex[\w.]+)`", link, paragraph)
        return _NAME.sub(link, paragraph)

    return "\n\n".join(link_paragraph(paragraph) for paragraph in text.split("\n\n"))


class Links(HTMLParser):
    """What a page links to, and what can be linked to on it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.hrefs: set[str] = set()
        self.ids: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if name == "href" and tag == "a" and value:
                self.hrefs.add(value)


def broken_links(out: Path) -> list[str]:
    """Links of the built pages to files and places that are not there."""
    pages = {path.resolve(): Links(path.read_text()) for path in out.rglob("*.html")}
    broken = []
    for path, links in pages.items():
        for href in links.hrefs:
            url = urlsplit(href)
            target = (path.parent / url.path).resolve() if url.path else path
            if not url.scheme and (target not in pages or (url.fragment and url.fragment not in pages[target].ids)):
                broken.append(f"{path.relative_to(out)}: {href}")
    return sorted(broken)


def load() -> dict[str, pdoc.doc.Module]:
    modules = {}
    for name in PAGES:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            getattr(module, public)  # some are imported when they are first asked for
        modules[name] = pdoc.doc.Module(module)
        if name in ONLY:
            modules[name].__dict__["members"] = {ONLY[name]: modules[name].members[ONLY[name]]}
    for module in modules.values():
        for member in module.members.values():
            if isinstance(member, pdoc.doc.Class):
                take_in(member)
            for each in [member, *(member.members.values() if isinstance(member, pdoc.doc.Class) else [])]:
                if isinstance(each, pdoc.doc.Function) and each.taken_from[0].startswith("mqindex"):
                    each.__dict__["signature"] = as_written(each)
                if each.name == "__init__" and each.docstring.startswith("Create new instance of"):
                    each.__dict__["docstring"] = ""
                if isinstance(each, pdoc.doc.Class | pdoc.doc.Function) and not (
                    each.docstring or each.name.startswith("_")
                ):
                    warnings.warn(f"{each.fullname} has no docstring", stacklevel=1)
    return modules


def take_in(cls: pdoc.doc.Class) -> None:
    """What a class inherits from one that has no page of its own is described as its own."""
    described = {member for page in PAGES for member in getattr(sys.modules[page], "__all__", [])}
    for member in cls.members.values():
        module, owner = member.taken_from[0], member.taken_from[1].rpartition(".")[0]
        if module.startswith("mqindex") and owner not in described:
            member.taken_from = (cls.taken_from[0], f"{cls.taken_from[1]}.{member.name}")


def write(out: Path) -> None:
    sys.path.insert(0, str(ROOT))
    import manual

    import mqindex
    from tests.support.findings_document import document

    modules = load()
    names = Names(modules)

    @pass_context
    def rendered(context: Context, member: pdoc.doc.Doc) -> str:
        page = context["module"].modulename
        markdown = to_markdown(member.docstring, names, page, member.qualname)
        return re.sub(r"<p>(?=Source\b)", '<p class="source">', pdoc.render_helpers.to_html(markdown))

    pdoc.render.configure(docformat="markdown", template_directory=HERE, footer_text="")
    pdoc.render.env.filters["rendered"] = rendered
    pdoc.render.env.tests["shown"] = is_shown
    pdoc.render.env.globals["pages"] = PAGES
    pdoc.render.env.globals["version"] = mqindex.__version__
    shutil.rmtree(out, ignore_errors=True)
    for name, module in modules.items():
        path = out / f"{name.replace('.', '/')}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pdoc.render.html_module(module, modules))
    template = pdoc.render.env.get_template("module.html.jinja2")
    findings = template.render(
        module=modules["mqindex"], all_modules=modules, root_module_name="mqindex", title="findings", page=document()
    )
    (out / "findings.html").write_text(findings)
    (out / "index.html").write_text(pdoc.render.html_index(modules))
    (out / "search.js").write_text(pdoc.render.search_index(modules))
    manual.write(out / "man1")


def main() -> int:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write(OUT)
    problems = [str(each.message) for each in caught] + [f"broken link on {link}" for link in broken_links(OUT)]
    for problem in dict.fromkeys(problems):
        print(f"docs: {problem}", file=sys.stderr)
    if not problems:
        print(OUT.relative_to(ROOT) / "index.html")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
