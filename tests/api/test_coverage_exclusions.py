"""What `./dev coverage` does not count has its reason beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SRC_C = Path(__file__).parents[2] / "src_c"


@pytest.mark.skipif(not SRC_C.is_dir(), reason="an installed package is tested without its C sources")
def test_each_exclusion_has_a_reason() -> None:
    found = [
        (f"{path.name}:{number}", kind, reason)
        for path in sorted(SRC_C.iterdir())
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for kind, reason in re.findall(r"GCOVR_EXCL_(\w+)(.*)\*/", line)
    ]
    assert found and [where for where, kind, reason in found if not kind.endswith("STOP") and len(reason) < 5] == []
    assert {kind for _, kind, _ in found} <= {"LINE", "START", "STOP", "BR_LINE", "BR_START", "BR_STOP"}
