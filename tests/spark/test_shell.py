"""The shell's `--engine spark` in a session that is there; `tests/cli` starts one of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqindex.cli import main
from tests.support.golden import case


def test_verify_finds_the_same(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(case("killed-lost-493").unpack_after(tmp_path))
    assert main(["verify", root, "--json"]) == 1
    local = json.loads(capsys.readouterr().out)
    assert main(["verify", root, "--json", "--engine", "spark", "--workers", "2"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"] == local["findings"]
    assert spark.range(3).count() == 3, "the session goes on"
