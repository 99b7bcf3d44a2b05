"""Layout constants stand twice on purpose, in C and in Python; here they are compared, and with the broker's bytes."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest

from mqindex.kafka import layout as kafka_layout
from mqindex.kafka.layout import IndexKind
from mqindex.rocketmq import layout
from mqindex.rocketmq.sidecar import layout as sidecar_layout
from tests.support.each import for_each
from tests.support.golden import case

SRC_C = Path(__file__).parents[2] / "src_c"
TWINS = {  # name in src_c -> name in mqindex.rocketmq.layout
    "MQI_INDEX_HEADER_SIZE": "INDEX_HEADER_SIZE",
    "MQI_SLOT_SIZE": "INDEX_SLOT_SIZE",
    "MQI_ENTRY_SIZE": "INDEX_ENTRY_SIZE",
    "MQI_RUN_SIZE": "RUN_ENTRY_SIZE",
    "MQI_UNIT_SIZE": "QUEUE_UNIT_SIZE",
    "MQI_MAX_EXT_ADDRESS": "MAX_EXT_ADDRESS",
    "MQI_MAGIC_1": "MAGIC_MESSAGE_V1",
    "MQI_MAGIC_2": "MAGIC_MESSAGE_V2",
    "MQI_MAGIC_BLANK": "MAGIC_BLANK",
}
CONSTANT = re.compile(
    r"(?:#define\s+|^\s+)(MQI_\w+)(?:\s+|\s*=\s*)(\(?[-\w() *<+/]+?)\)?,?\s*(?:/\*.*)?$", re.MULTILINE
)
in_repository = pytest.mark.skipif(not SRC_C.is_dir(), reason="an installed package is tested without its C sources")


SIDECAR_TWINS = {"MQI_ROW_START_SIZE": sidecar_layout.FILTER_ROW_START_SIZE}
KAFKA_TWINS = {"MQI_OFFSET_ENTRY_SIZE": IndexKind.OFFSET, "MQI_TIME_ENTRY_SIZE": IndexKind.TIME}


def c_constants() -> dict[str, int]:
    """Every `#define` and enumerator with a number of its own."""
    found = {}
    for header in sorted(SRC_C.glob("*.h")):
        for name, text in CONSTANT.findall(header.read_text()):
            number = text.replace("(int32_t)", "").strip("() ")
            if re.fullmatch(r"-?(?:0x[0-9A-Fa-f]+|\d+)", number):
                value = int(number, 0)
                found[name] = value - (1 << 32) if "(int32_t)" in text and value >= 1 << 31 else value
    return found


@in_repository
@for_each(KAFKA_TWINS.items())
def test_both_layouts_of_kafka_agree(c_name: str, kind: IndexKind) -> None:
    assert c_constants()[c_name] == kind.entry_size


@in_repository
@for_each(TWINS.items())
def test_both_layouts_agree(c_name: str, python_name: str) -> None:
    assert c_constants()[c_name] == getattr(layout, python_name)


@in_repository
@for_each(SIDECAR_TWINS.items())
def test_both_layouts_of_sidecars_agree(c_name: str, number: int) -> None:
    assert c_constants()[c_name] == number


def drawn(title: str) -> dict[str, str]:
    """Byte -> field of one box of the layout's drawings."""
    lines = (layout.__doc__ or "").splitlines()
    box = lines.index(title) + 1
    return dict(zip(lines[box].split(), lines[box + 2].replace("|", " ").split(), strict=False))


@in_repository
def test_the_fields_of_the_index_header_and_entry_stand_where_the_layout_says() -> None:
    constants = c_constants()
    header, entry = drawn("header"), drawn("entry")
    assert len(header) == 6 and len(entry) == 4
    assert {name: int(at) for at, name in header.items()} == layout.INDEX_HEADER_FIELDS
    assert {name: int(at) for at, name in entry.items()} == layout.INDEX_ENTRY_FIELDS
    assert {name: constants[f"MQI_{name.upper()}"] for name in header.values()} == {
        name: int(at) for at, name in header.items()
    }
    assert {name: constants[f"MQI_ENTRY_{name.upper()}"] for name in entry.values()} == {
        name: int(at) for at, name in entry.items()
    }


@in_repository
@pytest.mark.parametrize(
    ("header", "first", "last", "prefix", "fields"),
    [
        ("index_file", "header   |", "40       4*S", "MQI_", 6),
        ("index_file", "entries  |", "index_count is", "MQI_ENTRY_", 4),
        ("run", "record   |", "*/", "MQI_RUN_", 3),
        ("key_filter", "rows   |", "Row r", "MQI_ROW_", 2),
        ("log_frame", "   0 total_size", "born_host: address", "MQI_FRAME_", 9),
        ("kafka_batch", "magic 2      |", "A magic above", "MQI_BATCH_", 10),
    ],
)
def test_the_drawing_in_a_header_of_c_is_its_enumerators(
    header: str, first: str, last: str, prefix: str, fields: int
) -> None:
    text = (SRC_C / f"mqi_{header}.h").read_text()
    drawing = text[text.index(first) :].partition(last)[0]
    drawn = dict(re.findall(r"(\d+) (\w+) [iu]\d+", drawing))
    constants = c_constants()
    assert len(drawn) == fields
    assert {name: constants[prefix + name.upper()] for name in drawn.values()} == {
        name: int(at) for at, name in drawn.items()
    }


@in_repository
def test_the_fields_of_a_unit_stand_where_the_layout_says() -> None:
    constants = c_constants()
    unit = drawn("unit")
    names = {"phy_offset": "PHY_OFFSET", "size": "MESSAGE_SIZE", "tags_code": "TAGS_CODE"}
    assert {name: constants[f"MQI_UNIT_{names[name]}"] for name in unit.values()} == {
        name: int(at) for at, name in unit.items()
    }


def test_the_size_of_a_brokers_file(tmp_path: Path) -> None:
    store = case("basic-493")
    (index, *_) = sorted((store.unpack(tmp_path) / "index").iterdir())
    assert index.stat().st_size == layout.index_file_size(*store.geometry)


def test_no_magic_number_is_written_twice() -> None:
    numbers = {layout.MAGIC_MESSAGE_V1, layout.MAGIC_MESSAGE_V2, layout.MAGIC_BLANK}
    package = Path(layout.__file__).parents[1]
    for path in package.rglob("*.py"):
        if path == Path(layout.__file__):
            continue
        literals = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert not literals & {abs(number) for number in numbers}, path.name


@pytest.mark.parametrize("module", [layout, kafka_layout], ids=["rocketmq", "kafka"])
def test_the_numbers_above_each_drawn_box_add_up(module: ModuleType) -> None:
    """Where two fields have numbers, the first one is as wide as its type says."""
    lines = (module.__doc__ or "").splitlines()
    checked = 0
    for number, line in enumerate(lines[:-3]):
        ruler = line.split()
        if ruler and all(word.isdecimal() for word in ruler) and lines[number + 1].startswith("+--"):
            types = [cell.strip() for cell in lines[number + 3].strip("|").split("|")]
            for begin, end, kind in zip(ruler, ruler[1:], types, strict=False):
                width = int(match[1]) // 8 if (match := re.match(r"[iu](\d+)", kind)) else 8  # a host: 8 or 20
                assert int(end) - int(begin) == width or kind == "", line
                checked += 1
    assert checked > 20
