"""Generated code: each kernel takes the instructions that `expected.json` has for this machine and compiler."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from tests.counts.counting import EXPECTED, counted, expected, inclusive, this_build

WITHIN = 0.03
PROFILE = """\
fl=(1) a.c
fn=(1) outer
3 10
calls=2 5
cfn=(2) inner
+1 40
fn=(2)
5 30
-1 10
fn=(1)
* 1
"""


def test_instructions_of_the_kernels(record_property: Callable[[str, object], None]) -> None:
    if shutil.which("valgrind") is None and not os.environ.get("CI"):
        pytest.skip("no valgrind; CI has it")
    found, build = counted(), this_build()
    known = expected().get(build)
    if known is None:
        record_property("instructions of the kernels", f"none are known for {build}; {EXPECTED.name} would get {found}")
        return
    assert found.keys() == known.keys()
    other = {name: (known[name], found[name]) for name in found if abs(found[name] / known[name] - 1) > WITHIN}
    assert not other, f"(expected, got) an item; meant: python -m {inclusive.__module__} keeps the new ones"
    record_property("instructions of the kernels", f"{len(found)} as they were, within {WITHIN:.0%}")


def test_what_callees_take_counts_for_the_caller() -> None:
    assert inclusive(PROFILE) == {"outer": 51, "inner": 40}
