"""No tracked file names a machine, a person's folder or a package mirror, nor carries what a build leaves behind."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MACHINE = re.compile(
    r"""(?<![\w.<-])/(?:home|Users|root|work|opt|mnt|srv)/\w  # somebody's folder
      | (?:https?|git|ssh)://(?!(?:127\.0\.0\.1|localhost)\b)[\w.-]*(?:artifact|mirror|nexus|proxy|internal)
      | --(?:extra-)?index-url | --trusted-host
    """,
    re.VERBOSE | re.IGNORECASE,
)
TEXT = {".py", ".pyx", ".pxd", ".pyi", ".c", ".h", ".md", ".toml", ".in", ".yml", ".yaml", ".sh", ".java", ".xml", ""}


def tracked_files() -> list[Path]:
    """What git knows; without git (an sdist, a foreign owner's folder), what is not obviously somebody's own."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return [ROOT / name for name in names.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        rooms = [ROOT / room for room in ("mqindex", "src_c", "tests", "bench", ".github")]
        files = [path for room in rooms for path in room.rglob("*") if path.is_file()]
        return [path for path in files if path.suffix in TEXT and "__pycache__" not in path.parts]


def test_no_file_names_a_machine() -> None:
    found = []
    for path in tracked_files():
        if path.suffix in TEXT and path.exists() and path != Path(__file__):
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if MACHINE.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []


def test_no_build_product_is_tracked() -> None:
    products = {".so", ".o", ".pyc", ".html", ".class", ".jar"}
    generated = [path for path in tracked_files() if path.suffix in products]
    assert [path.name for path in generated] == []
