"""A sample of the matrix of `./dev faults`, and that its judge sees what it is there for."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.preload import available, environment

REPOSITORY = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.skipif(not available(), reason="libraries are loaded before libc on Linux only")


def preloaded(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment(tmp_path), cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


def test_a_sample_of_the_matrix_survives(tmp_path: Path, rng: random.Random) -> None:
    seed = str(rng.getrandbits(32))
    done = preloaded(tmp_path, "-m", "tests.faults", "--sample", "5", "--pairs", "3", "--seed", seed)
    assert done.returncode == 0, f"--seed {seed}\n{done.stdout}{done.stderr}"


BAD = """
import os, time
from pathlib import Path
from tests.faults import attempt, matrix

class Bad:
    def __init__(self, name, react):
        self.name, self.react = name, react
    def prepare(self, place):
        (place / "file").write_bytes(b"old")
    def begin(self, place):
        pass
    def run(self, place, told):
        fresh = place / ".file.0123456789ab"
        try:
            fd = os.open(fresh, os.O_CREAT | os.O_WRONLY)
            os.close(fd)
            os.rename(fresh, place / "file")
        except OSError as error:
            self.react(place, error)
        finally:
            if self.name != "scrap" and fresh.exists():
                fresh.unlink()
    def judge(self, place, told):
        if not (place / "file").exists():
            raise attempt.Lost("the file is gone")

def raise_other(place, error):
    raise KeyError("x")
def raise_unnamed(place, error):
    raise OSError(error.errno, "x")
def raise_it(place, error):
    raise error
def end(place, error):
    (place / "file").unlink()
def hang(place, error):
    time.sleep(1000)
def die(place, error):
    os.abort()

for word, react in {"survived": raise_it, "lost": end, "traceback": raise_other, "hang": hang, "scrap": raise_it,
                    "unnamed": raise_unnamed, "signal": die}.items():
    matrix.OPERATIONS[word] = Bad(word, react)
    most, attempt.BOUND = (1, 3.0) if word == "hang" else (2, 60.0)
    totals = matrix.run([word], lambda cells: [cell for cell in cells if cell.failure == "EIO"][:most], workers=1)
    expected = {"signal": "traceback"}.get(word, word)
    assert totals.words[expected] > 0 and totals.ok == (word == "survived"), (word, totals)
print("done")
"""


def test_the_judge_sees_each_way_to_fail(tmp_path: Path) -> None:
    done = preloaded(tmp_path, "-c", BAD)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
