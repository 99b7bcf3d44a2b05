"""A directory that is in a container's image: its files may be replaced, but it cannot be renamed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.test_full_disk import REPOSITORY, mountable

INSIDE = """
import pathlib, subprocess, sys
from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.files.results.output_place import require_new
from mqindex.rocketmq import rebuild
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents

home = pathlib.Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "none", str(home)], check=True)
for name in ("image/out", "image/empty", "upper", "work", "seen"):
    (home / name).mkdir(parents=True)
(home / "image/out/file").write_text("mine")
layers = f"lowerdir={home}/image,upperdir={home}/upper,workdir={home}/work,userxattr"
subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(home / "seen")], check=True)
store = make_small_store(home / "store")
seen = home / "seen"
before = contents(seen)
try:
    rebuild(store, seen / "out", overwrite=True, engine=None, **OPTIONS)
except FileStateError as error:
    assert str(error).startswith("overlayfs renames no directory of a lower layer"), error
else:
    raise AssertionError
assert contents(seen) == before
(seen / "new").mkdir()
(seen / "new" / "file").write_text("mine")
for name in ("new", "nothing"):
    require_new(str(seen / name), overwrite=True)
report = rebuild(store, seen / "new", overwrite=True, engine=LocalEngine(1), **OPTIONS)
assert (pathlib.Path(report.backup) / "file").read_text() == "mine"
assert sorted(path.name for path in seen.iterdir()) == ["empty", "new", pathlib.Path(report.backup).name, "out"]
print("done")
"""
OVERLAY = """
mount -t tmpfs none /tmp && cd /tmp && mkdir a b c d &&
mount -t overlay overlay -o lowerdir=/tmp/a,upperdir=/tmp/b,workdir=/tmp/c,userxattr d && cd d && mkdir x && mv x y
"""


@pytest.mark.skipif(
    not mountable(OVERLAY), reason="no overlay may be mounted here; its answer to a rename is tested anyway"
)
def test_what_cannot_be_moved_to_a_backup_is_told_before_the_work(tmp_path: Path) -> None:
    """All was built, and then the rename failed: "Invalid cross-device link"."""
    command = ["unshare", "-Urm", sys.executable, "-c", INSIDE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
