"""`mqindex sample`: what it unpacks is what the golden cases hold, and it is in every package."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.support.sample_archive import ARCHIVE, contents

ROOT = Path(__file__).parents[2]


def test_the_archive_holds_the_golden_cases_byte_for_byte() -> None:
    with tarfile.open(ARCHIVE) as tar:
        found = {one.name: file.read() if (file := tar.extractfile(one)) else None for one in tar}
    assert found == contents()
    assert ARCHIVE.stat().st_size < 200_000
    assert "killed-lost-493" in ARCHIVE.with_name("ORIGIN.md").read_text()


def test_a_store_and_a_partition_appear_with_all_files_as_of_now(shell: Shell, tmp_path: Path) -> None:
    began = time.time() - 2
    done = shell("sample", tmp_path / "new", "--json")
    assert (done.status, done.err) == (0, "")
    told = {"store": str(tmp_path / "new" / "store"), "partition": str(tmp_path / "new" / "orders-0")}
    assert done.json == [{"schema": "mqindex.sample/1", **told}]
    for name, content in contents().items():
        path = tmp_path / "new" / name
        assert path.is_dir() if content is None else path.read_bytes() == content
        assert path.stat().st_mtime >= began  # as after a copy: the time of a log without time index
    assert sorted(os.listdir(tmp_path / "new")) == ["orders-0", "store"]
    assert shell("verify", tmp_path / "new" / "store").status == 1


def test_what_is_there_is_not_overwritten(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "mine").write_text("mine")
    done = shell("sample", tmp_path)
    assert (done.status, done.out) == (2, "")
    expected = f"the output exists already: {tmp_path / 'store'}; choose another directory"
    assert done.err == f"mqindex: {expected}\n"
    assert sorted(os.listdir(tmp_path)) == ["mine", "store"]
    assert shell("sample", tmp_path / "mine").status == 2


@pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="an installed package is tested without its sources")
def test_a_wheel_has_the_archive(tmp_path: Path) -> None:
    """What setuptools puts into a wheel beside the kernels."""
    pytest.importorskip("Cython")
    for name in ["setup.py", "pyproject.toml", "README.md", "LICENSE"]:
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "mqindex", tmp_path / "mqindex", ignore=shutil.ignore_patterns("*.so", "*.pyx"))
    program = (
        "import sys; from setuptools import setup; sys.argv[1:] = ['-q', 'build_py', '--build-lib', 'lib']; setup()"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(path.name for path in (tmp_path / "lib/mqindex/cli/sample").iterdir()) == [
        "ORIGIN.md",
        "sample.tar.gz",
    ]


def test_the_command_that_is_printed_can_be_typed(shell: Shell, tmp_path: Path) -> None:
    done = shell("sample", tmp_path / "my dir")
    (command,) = (line.partition("`")[2].rstrip("`") for line in done.lines if "`" in line)
    assert shlex.split(command) == ["mqindex", "verify", str(tmp_path / "my dir" / "store")]
