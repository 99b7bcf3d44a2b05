"""The process that makes a page: it makes what this one would, and no failure of it is the page's."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from mqindex import rocketmq
from mqindex.html.press import Press
from mqindex.html.render import render
from mqindex.html.rocketmq import page_of
from mqindex.rocketmq.catalogue import CATALOGUE
from tests.support.golden import case

LOADED = "matplotlib.backends.backend_svg"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where nothing has been drawn yet."""
    monkeypatch.delitem(sys.modules, LOADED, raising=False)


@pytest.mark.usefixtures("alone")
def test_the_process_makes_the_page_that_this_one_would(tmp_path: Path) -> None:
    health = rocketmq.report(case("killed-lost-493").unpack_after(tmp_path))
    work = health.to_dict(), health.verify, CATALOGUE, ["mqindex", "repair"]
    with Press("mqindex.html.rocketmq") as press:
        assert press._process is not None
        made = press.page(*work)
    assert LOADED not in sys.modules
    assert made == render(page_of(*work)).encode()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("executable", ["/bin/false", "/nowhere/python", ""])
def test_without_the_process_the_page_is_made_here(
    tmp_path: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = rocketmq.report(case("basic-493").unpack(tmp_path))
    monkeypatch.setattr(sys, "executable", executable)
    with Press("mqindex.html.rocketmq") as press:
        made = press.page(health.to_dict(), health.verify, CATALOGUE, [])
    assert b"Clean" in made


@pytest.mark.usefixtures("alone")
def test_the_process_ends_without_work() -> None:
    with Press("mqindex.html.rocketmq") as press:
        process = press._process
    assert process is not None
    assert process.returncode == 0


def test_what_draws_is_not_loaded_twice() -> None:
    import matplotlib.backends.backend_svg  # noqa: F401

    with Press("mqindex.html.rocketmq") as press:
        assert press._process is None


def test_the_process_ends_with_the_one_that_started_it() -> None:
    program = """
import os, signal
from mqindex.html.press import Press
with Press("mqindex.html.kafka") as press:
    print(press._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=False)
    press = Path("/proc", done.stdout.decode().strip(), "stat")
    with contextlib.suppress(OSError):  # it is gone; where nobody waits for orphans, a zombie
        while press.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.05)
