"""The wheel job on this machine, for interpreters that are here: sdist, wheel from it, tests in an environment alone.

What is installed and run is what `[tool.cibuildwheel]` of pyproject.toml says of the interpreter. Only the containers
are missing, and with them the oldest C library that a wheel may meet.

    python -m tests.support.wheels [PYTHON...]
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

__all__ = ["PROJECT", "packages", "settings"]

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
IDENTIFIER = """
import platform, sys, sysconfig
libc = "macosx" if sys.platform == "darwin" else "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(f"cp{sys.version_info[0]}{sys.version_info[1]}{free}-{libc}_{platform.machine()}")
"""


def settings(identifier: str) -> dict[str, Any] | None:
    """What cibuildwheel is told for one identifier, such as cp314t-musllinux_aarch64. None: it is not built."""
    table = PROJECT["tool"]["cibuildwheel"]
    overrides = [each for each in table["overrides"] if fnmatch(identifier, each["select"])]
    if not any(fnmatch(identifier, pattern) for pattern in table["build"].split()):
        return None
    return {key: value for part in (table, *overrides) for key, value in part.items()}


def packages(*groups: str) -> list[str]:
    """The requirements of dependency groups, those of the groups in them too."""
    found = []
    for group in groups:
        for each in PROJECT["dependency-groups"][group]:
            found += packages(each["include-group"]) if isinstance(each, dict) else [each]
    return found


def run(*command: str | Path, **options: Any) -> str:
    """A command that must succeed, seen by the one who started this; its output where that is asked for."""
    print("wheels:", shlex.join(map(str, command)), file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, text=True, **options).stdout or ""


def try_wheel(python: str, sdist: Path, out: Path) -> str:
    """Build one interpreter's wheel and run its tests; in words, what came out."""
    identifier = run(python, "-c", IDENTIFIER, stdout=subprocess.PIPE).strip()
    said = settings(identifier)
    if said is None:
        return f"{identifier}: not built"
    with tempfile.TemporaryDirectory(prefix="mqindex-wheel-") as scratch:
        venv = Path(scratch, "venv")
        run(python, "-m", "venv", venv)
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        environment["PATH"] = f"{venv / 'bin'}{os.pathsep}{environment['PATH']}"
        pip = [venv / "bin" / "python", "-m", "pip"]
        run(*pip, "install", "-q", "--upgrade", "pip", env=environment)
        run(*pip, "wheel", "-q", "--no-deps", "-w", Path(scratch, "wheel"), sdist, env=environment)
        wheel = next(Path(scratch, "wheel").glob("*.whl"))
        environment |= said["test-environment"]
        run(*pip, "install", "-q", wheel, *packages(*said["test-groups"]), env=environment)
        place = Path(scratch, "tests-of-the-wheel")
        place.mkdir()
        for source in said["test-sources"]:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place / source, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, place)
        done = subprocess.run(said["test-command"], shell=True, cwd=place, env=environment, check=False)
        shutil.copy(wheel, out)
        return f"{identifier}: {'FAILED' if done.returncode else 'passed'}: {wheel.name}"


def main(pythons: list[str]) -> int:
    out = ROOT / "build" / "wheels"
    shutil.rmtree(out, ignore_errors=True)
    run(sys.executable, "-m", "check_manifest", ROOT)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", out, ROOT)
    results = [try_wheel(python, next(out.glob("*.tar.gz")), out) for python in pythons or [sys.executable]]
    print("\n".join(results))
    return 1 if any("FAILED" in each for each in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
