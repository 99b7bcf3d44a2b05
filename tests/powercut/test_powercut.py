"""A few of the cuts of `./dev powercut`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.powercut.disk import why_not

REPOSITORY = Path(__file__).resolve().parent.parent.parent


@pytest.mark.skipif(bool(why_not()), reason=f"{why_not()}; killed writers are tested anyway")
def test_what_was_acknowledged_is_there_after_the_power_went() -> None:
    command = [sys.executable, "-m", "tests.powercut", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("3 cuts") == 6
