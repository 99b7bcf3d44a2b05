"""How a step of the demo is shown: a heading, then commands as one types them, with what they print."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from mqindex import rocketmq

__all__ = ["heading", "show", "tell"]


def heading(words: str) -> None:
    print(f"\n{'=' * len(words)}\n{words}\n{'=' * len(words)}")


def tell(*lines: str) -> None:
    """Run lines of Python as one types them, and print what they give."""
    names: dict[str, object] = {"rocketmq": rocketmq}
    for line in lines:
        print(f">>> {line}")
        if line.startswith(("[", "(", "result.", "store.")):
            value = eval(line, names)
            if value is not None:
                print(value)
        else:
            exec(line, names)
    print()


def show(command: str, *, expect: int = 0, shell: bool = False) -> None:
    """Print a command as one types it, run it, and insist on its exit code."""
    print(f"$ {command}", flush=True)
    began = time.perf_counter()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command if shell else shlex.split(command), shell=shell, env=environment, check=False)
    print(f"[exit code {done.returncode}, {time.perf_counter() - began:.1f} s]\n", flush=True)
    if done.returncode != expect:
        sys.exit(f"the demo expected exit code {expect}")
