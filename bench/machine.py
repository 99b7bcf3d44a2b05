"""What a record says about where it was made: processor, kernel, compiler, versions, commit. No names of hosts."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib import metadata

__all__ = ["ROOT", "commit", "describe", "slug"]

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = ["numpy", "pyarrow", "pyspark", "Cython", "duckdb", "lmdb", "rocksdict"]
PRODUCT = ["mqindex", "src_c", "setup.py"]


def describe() -> dict[str, object]:
    """The machine and the software on it."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": f"{platform.system()} {re.match(r'[0-9.]*[0-9]', platform.release())[0]}",  # type: ignore[index]
        "compiler": _first_line(["cc", "--version"]),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "java": _first_line(["java", "-version"]),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def slug() -> str:
    """A short, neutral directory name: processor family and number of cores.

    >>> slug() == slug().lower()
    True
    """
    words = re.sub(r"\((r|tm)\)|cpu|processor|@.*", " ", _cpu(), flags=re.IGNORECASE)
    number = f"-{_cpu_number()}" if _cpu_number() else ""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") + f"{number}-{os.cpu_count()}-cores"


def commit() -> str:
    """The commit of the product's files; a `+` behind it: they were changed since."""
    head = _first_line(["git", "rev-parse", "--short=12", "HEAD"])
    changed = _first_line(["git", "status", "--porcelain", "--untracked-files=all", "--", *PRODUCT])
    return head + ("+" if changed else "")


def _cpu() -> str:
    for line in _cpuinfo():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cpu_number() -> str:
    """x86 family and model tell generations apart where a hypervisor hides the product's name."""
    facts = dict(re.findall(r"^(cpu family|model)\s*: (\d+)", "\n".join(_cpuinfo()), flags=re.MULTILINE))
    return f"{facts['cpu family']}.{facts['model']}".replace(".", "-") if len(facts) == 2 else ""


def _cpuinfo() -> list[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _caches() -> dict[str, str]:
    base = "/sys/devices/system/cpu/cpu0/cache"
    found = {}
    for index in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        level, size, kind = (_read(f"{base}/{index}/{name}") for name in ("level", "size", "type"))
        if level and kind != "Instruction":
            found[f"L{level}"] = size
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _first_line(command: list[str]) -> str:
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return ""
    lines = (run.stdout or run.stderr).splitlines()
    return lines[0].strip() if lines else ""


if __name__ == "__main__":
    print(slug(), describe(), commit(), file=sys.stdout)
