"""What the docstring of every public name says: parameters with types and units, errors, source, an example."""

from __future__ import annotations

import builtins
import enum
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mqindex import errors
from mqindex.rocketmq.layout import IndexHeader
from tests.api.test_exported_names import EXPORTS
from tests.support.each import for_each

ARRAYS = {"Keys", "Times", "ArrayLike", "NDArray", "MessageColumns", "ArrayLike | None"}
TIMES = {"Time", "Times"}
SHAPE = re.compile(r"shape \(|\b[a-z]+\d*\[\w")
DTYPE = re.compile(r"\bu?int(8|16|32|64)\b|\bbool\b|\bbytes\b|`Columns`")
HEADING = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)


class Documented(NamedTuple):
    """A public function, method, property or class, and where it is."""

    path: str
    thing: Any
    owner: type | None

    def __str__(self) -> str:
        return self.path

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.thing) or ""

    @property
    def parameters(self) -> dict[str, str]:
        """Name -> annotation as written."""
        if isinstance(self.thing, property | functools.cached_property) or inspect.isclass(self.thing):
            return {}
        found = inspect.signature(getattr(self.thing, "__func__", self.thing)).parameters.values()
        named = [p for p in found if p.name not in {"self", "cls"} and p.kind is not p.VAR_KEYWORD]
        return {p.name: p.annotation if isinstance(p.annotation, str) else "" for p in named}

    @property
    def returns(self) -> str:
        function = getattr(self.thing, "fget", None) or getattr(self.thing, "__func__", self.thing)
        return str(getattr(function, "__annotations__", {}).get("return", ""))

    def section(self, name: str) -> str:
        parts = HEADING.split(self.doc)
        return dict(zip(parts[1::2], parts[2::2], strict=True)).get(name, "")


def documented(module: str) -> Iterator[Documented]:
    loaded = importlib.import_module(module)
    for name in sorted(EXPORTS.get(module) or set(loaded.__all__)):
        thing = getattr(loaded, name)
        if inspect.isclass(thing):
            yield Documented(f"{module}.{name}", thing, None)
            yield from members(f"{module}.{name}", thing)
        elif inspect.isroutine(thing):
            yield Documented(f"{module}.{name}", thing, None)


def members(path: str, owner: type) -> Iterator[Documented]:
    for name in sorted(dir(owner)):
        of = next((base for base in owner.__mro__ if name in vars(base)), object)
        value = inspect.getattr_static(owner, name)
        described = isinstance(value, property | functools.cached_property | classmethod) or inspect.isroutine(value)
        if not name.startswith("_") and described and of.__module__.startswith("mqindex"):
            one = Documented(f"{path}.{name}", value, owner)
            assert "Internal: " not in one.doc, f"{one}: what is not for users has a name that begins with _"
            yield one


def everything() -> list[Documented]:
    found = list[Documented]()
    for module in [*EXPORTS, "mqindex.errors"]:
        if module == "mqindex.spark" and importlib.util.find_spec("pyspark") is None:
            continue
        found += documented(module)
    return found


ALL = everything()
NAMES = {each.path.split(".", 2)[2]: each for each in reversed(ALL) if each.path.count(".") > 1}


def said(each: Documented, hops: int = 2) -> str:
    """A docstring, that of the class, and those that it sends its reader to."""
    text = each.doc + ("\n" + inspect.getdoc(each.owner) if each.owner else "")  # type: ignore[operator]
    for name in re.findall(r"`([\w.]+)`", each.doc) if hops else []:
        short = re.sub(r"^mqindex\.\w+\.", "", name)
        for candidate in {short, short.partition(".")[0], f"{each.owner.__name__}.{short}" if each.owner else short}:
            if candidate in NAMES and NAMES[candidate] is not each:
                text += "\n" + said(NAMES[candidate], hops - 1)
    return text


@for_each(ALL)
def test_a_docstring_says_what_is_asked(each: Documented) -> None:
    assert each.doc, "no docstring"
    text = said(each)
    for name, annotation in each.parameters.items():
        assert re.search(rf"\b{name}\b", text), f"nothing is said of {name}"
        kinds = set(re.findall(r"\w+", annotation))
        if kinds & ARRAYS:
            line = re.search(rf"^.*\b{name}\b.*(\n .*)*", text, re.MULTILINE)
            assert line and (SHAPE.search(text)), f"the shape of {name}"
        if kinds & TIMES and "targets" not in name:
            assert re.search(r"\bms\b", text), f"the unit of {name}"
    if re.search(r"NDArray|\bColumns\b", each.returns):
        assert DTYPE.search(text), f"the types of what comes back: {each.returns}"


@for_each(one for one in ALL if one.parameters and (one.owner is None or one.path.endswith((".open", ".create"))))
def test_what_takes_a_path_says_its_errors(each: Documented) -> None:
    if any("PathLike" in annotation or "StrPath" in annotation for annotation in each.parameters.values()):
        assert re.search(r"^Raises\n---", said(each), re.MULTILINE)


def test_the_header_of_an_index_file_is_public() -> None:
    """It was called internal, although examples use it."""
    assert all(field in NAMES["IndexFile.header"].doc for field in IndexHeader._fields)


@for_each(ALL)
def test_errors_that_are_named_exist(each: Documented) -> None:
    for line in each.section("Raises").splitlines():
        if line.strip() and not line.startswith(" "):
            for name in line.partition(" : ")[0].split(", "):
                found = getattr(errors, name.strip(), None) or getattr(builtins, name.strip(), None)
                assert inspect.isclass(found) and issubclass(found, BaseException), line


@for_each(ALL)
def test_a_section_has_one_name_a_line(each: Documented) -> None:
    for section in ["Parameters", "Returns", "Raises", "Attributes"]:
        for line in each.section(section).splitlines():
            assert line.startswith(" ") or line.count(" : ") < 2, line
            assert line.startswith(" ") or not re.search(r"[.] [\w, ]+ : ", line), line


def of_a_broker(each: Documented) -> bool:
    return each.owner is None and each.path.startswith(("mqindex.rocketmq.", "mqindex.kafka."))


@for_each(filter(of_a_broker, ALL))
def test_the_source_of_semantics_is_named(each: Documented) -> None:
    assert re.search(r"Source( of the rules)?: (RocketMQ|Kafka) \d\.\d", said(each, hops=1))


@for_each(one for one in ALL if one.owner is None)
def test_there_is_an_example(each: Documented) -> None:
    """Of the name itself, or, for plain data and errors, of what returns or raises it."""
    plain = inspect.isclass(each.thing) and (
        issubclass(each.thing, tuple | enum.Enum | BaseException) or hasattr(each.thing, "__dataclass_fields__")
    )
    examples = each.doc if not plain else said(each, hops=1)
    assert ">>> " in examples or (plain and issubclass(each.thing, BaseException))


@for_each(ALL)
def test_a_reference_to_a_module_leads_somewhere(each: Documented) -> None:
    for name in re.findall(r"`(mqindex(?:\.\w+)+)`", each.doc):
        pkgutil.resolve_name(name)
