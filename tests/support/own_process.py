"""A piece of a test in a process of its own: what ends it by a signal does not end the tests."""

from __future__ import annotations

import subprocess
import sys
import textwrap

__all__ = ["run_apart"]


def run_apart(code: str, *arguments: object) -> str:
    """What the code printed; `arguments` are `sys.argv[1:]`. A signal and a traceback fail with what it said."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stderr[-4000:]}"
    return done.stdout
