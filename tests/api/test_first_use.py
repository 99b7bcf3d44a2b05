"""What a new process loads: a room's public names their own modules, a look-up those that it needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mqindex
from mqindex import kafka, rocketmq

ROOMS = ["kafka", "rocketmq", "spark"]
SLOW = {  # of the standard library, and not NumPy's own: each takes 0.3 to 3 ms
    "concurrent.futures",
    "dataclasses",
    "json",
    "logging",
    "queue",
    "shutil",
    "subprocess",
    "tempfile",
    "uuid",
}


def loaded_by(program: str, *arguments: Path) -> set[str]:
    end = "\nimport sys; print(*sys.modules)"
    command = [sys.executable, "-c", program + end, *map(str, arguments)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_s_names_are_where_type_checkers_find_them(room: str) -> None:
    source = ast.parse((Path(mqindex.__file__).parent / room / "__init__.py").read_text())
    blocks = [node for node in source.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = [node.value for node in source.body if isinstance(node, ast.Assign) and "_HOME" in ast.dump(node)]
    assert ast.literal_eval(homes[0]) == {alias.name: node.module for node in imports for alias in node.names}


@pytest.mark.parametrize("room", [kafka, rocketmq])
def test_a_name_that_a_room_has_not_is_an_attribute_error(room: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Verify'"):
        _ = room.Verify  # type: ignore[attr-defined]


def test_a_look_up_in_an_index_file_loads_little(tmp_path: Path) -> None:
    rocketmq.IndexFile.create(tmp_path / "one", hash_slot_num=4, index_num=4).close()
    program = (
        "import sys; from mqindex.rocketmq import IndexFile\n"
        "with IndexFile.open(sys.argv[1], hash_slot_num=4, index_num=4) as index: index.select_phy_offset('none')"
    )
    check(loaded_by(program, tmp_path / "one"), 50)


def test_a_look_up_in_a_kafka_index_loads_little(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.index"
    path.write_bytes(bytes(8))
    program = "import sys; from mqindex.kafka import OffsetIndex\nOffsetIndex.open(sys.argv[1]).lookup(0)"
    check(loaded_by(program, path), 40)


VERIFY = "import sys; from mqindex.{0} import verify\nverify(sys.argv[1], deep=True)"
SELECT = (
    "import sys; import numpy as np; from mqindex.rocketmq import IndexFile\n"
    "with IndexFile.open(sys.argv[1], hash_slot_num=500, index_num=5000) as index:\n"
    "    index.select_phy_offsets(['none']); index.select_phy_offsets(np.array(['none']))"
)


@pytest.mark.parametrize(
    ("program", "part"),
    [
        (VERIFY.format("rocketmq"), "store"),
        (VERIFY.format("kafka"), "orders-0"),
        (SELECT, "store/index/*"),
    ],
)
def test_numpys_masked_arrays_are_left_where_they_are(tmp_path: Path, program: str, part: str) -> None:
    """They take a tenth of NumPy's start, and some of its functions load them to look at a plain array."""
    subprocess.run([sys.executable, "-m", "mqindex", "sample", tmp_path / "sample"], check=True, capture_output=True)
    (path,) = (tmp_path / "sample").glob(part)
    more = loaded_by(program, path) - loaded_by("import numpy")
    assert {name for name in more if f"{name}.".startswith("numpy.ma.")} == set()


def check(loaded: set[str], most: int) -> None:
    own = {name for name in loaded if name.split(".")[0] == "mqindex"}
    assert loaded & SLOW == set()
    assert len(own) <= most, sorted(own)
