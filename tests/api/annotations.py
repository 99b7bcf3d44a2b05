"""Fails when a line inside a `noexcept nogil` function or a `with nogil` block does something of Python.

Cython scores each line of its annotated HTML by the Python operations in the C that it became. Inside a kernel every
score must be 0, and the compiler must have no hint about performance.

    python tests/api/annotations.py [FILE.pyx ...]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNEL = re.compile(r"^(\s*)(?:cdef|cpdef)\b.*\bnogil\s*:|^(\s*)with nogil\s*:")
LINE = re.compile(r'<pre class="cython line score-(\d+)"[^>]*>[+&#;\d\w]*<span class="">\s*(\d+)</span>')


def kernel_lines(source: list[str]) -> Iterator[int]:
    """Numbers, from 1, of the lines of code inside kernels."""
    number = 0
    while number < len(source):
        start, header = number, source[number]
        while header.count("(") > header.count(")") and number + 1 < len(source):
            number += 1
            header += " " + source[number].strip()
        number += 1
        if not (kernel := KERNEL.match(header)):
            number = start + 1
            continue
        indent = len(kernel[1] if kernel[1] is not None else kernel[2])
        while number < len(source):
            code = source[number].strip()
            if code and not code.startswith("#"):
                if len(source[number]) - len(source[number].lstrip()) <= indent:
                    break
                yield number + 1
            number += 1


def annotate(paths: list[Path], directory: str) -> str:
    """What the compiler says of all modules, whose annotated HTML it leaves there. One process: each begins for 1 s."""
    command = [sys.executable, "-m", "cython", "-3", "-a", "-Wextra", "-I", str(ROOT), "-o", directory]
    run = subprocess.run([*command, *map(str, paths)], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stderr


def faults(path: Path, html: str) -> tuple[int, list[str]]:
    """How many kernel lines a module has, and a sentence for each that does something of Python."""
    source = path.read_text().splitlines()
    scores = {int(number): int(score) for score, number in LINE.findall(html)}
    if not scores:
        raise SystemExit(f"{path}: no scored line found; has Cython's HTML changed?")
    lines = list(kernel_lines(source))
    return len(lines), [
        f"{path}:{number}: Python inside a kernel (score {scores[number]}): {source[number - 1].strip()}"
        for number in lines
        if scores.get(number)
    ]


def main() -> None:
    paths = [Path(name).resolve() for name in sys.argv[1:]] or sorted((ROOT / "mqindex" / "_native").glob("*.pyx"))
    total, found = 0, []
    with tempfile.TemporaryDirectory() as directory:
        said = annotate(paths, directory)
        for path in paths:
            lines, sentences = faults(path, (Path(directory) / f"{path.stem}.html").read_text())
            total += lines
            found += sentences
    found += [line for line in said.splitlines() if "performance hint" in line]
    print("\n".join([*found, f"{total} lines in kernels, {len(found)} with Python"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
