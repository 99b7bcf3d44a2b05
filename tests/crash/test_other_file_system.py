"""Parts of a store that lie in another file system, or behind another mount of the same: no rename leads there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.test_full_disk import REPOSITORY, mountable
from tests.crash.test_repair import SITUATIONS, broken

INSIDE = """
import os, pathlib, shutil, subprocess, sys
store, part, how = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1]) / sys.argv[2], sys.argv[3]
from mqindex.engines import LocalEngine
from mqindex.rocketmq import repair, undo_repair, verify
from tests.crash.test_repair import OPTIONS
from tests.support.tree import contents, scraps, state

aside = store.parent / "aside"
shutil.copytree(part, aside)
source = ["-t", "tmpfs", "none"] if how == "tmpfs" else ["--bind", str(aside)]
subprocess.run(["mount", *source, str(part)], check=True)
shutil.copytree(aside, part, dirs_exist_ok=True) if how == "tmpfs" else None
before, options = state(store), {"engine": LocalEngine(1), **OPTIONS}
report = repair(store, **options)
assert verify(store, deep=True, **options).ok
assert set(contents(aside).values()) <= set(contents(store).values()) or how == "bind"
after = state(store)
undone = undo_repair(store, report.backup)
assert state(store) == before, (before, state(store))
undo_repair(store, undone.backup)
assert state(store) == after
assert scraps(store) == []
print("done")
"""


@pytest.mark.skipif(not mountable(), reason="mounting in a namespace of one's own is not permitted here")
@pytest.mark.parametrize("how", ["tmpfs", "bind"])
@pytest.mark.parametrize(
    ("part", "situation"),
    [
        ("index", "spoilt"),
        ("index", "incomplete"),
        ("consumequeue", "queues spoilt"),
        ("consumequeue/Topic2", "queues spoilt"),
    ],
)
def test_a_repair_ends_where_no_rename_leads_and_is_taken_back(
    part: str, situation: str, how: str, tmp_path: Path
) -> None:
    """With `index/` on another file system every repair ended half done, in EXDEV."""
    assert situation in SITUATIONS
    store, _ = broken(situation, tmp_path)
    command = ["unshare", "-Urm", sys.executable, "-c", INSIDE, str(store), part, how]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
