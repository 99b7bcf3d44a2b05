"""What only the nightly run does, where MQINDEX_NIGHTLY=1: the whole of a matrix of which `./dev test` has a sample.

A sample is chosen so that each kind of failure is still met, and says how. Parameters that are left out are marked
`nightly`; a loop in a test asks `NIGHTLY` how far it goes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["NIGHTLY", "one_of", "some"]

NIGHTLY = bool(os.environ.get("MQINDEX_NIGHTLY"))


def some(values: Iterable[Any], sampled: Callable[..., bool]) -> list[Any]:
    """Parameters of a test: those of the sample, and the others marked. A value that is a tuple is several arguments.

    >>> [len(one.marks) for one in some([("a", 1), ("b", 2)], lambda name, number: name == "a")]
    [0, 1]
    """
    found = []
    for value in values:
        each = value if isinstance(value, tuple) else (value,)
        found.append(pytest.param(*each, marks=() if sampled(*each) else pytest.mark.nightly))
    return found


def one_of(count: int, *lists: Iterable[Any]) -> list[Any]:
    """Parameters of all combinations of values; one of so many is the sample, spread so that it has each value.

    >>> [one.values for one in one_of(2, "ab", (1, 2)) if not one.marks]
    [('a', 1), ('b', 2)]
    """
    every = [list(one) for one in lists]
    found, met = [], [set[int]() for _ in every]
    for places in itertools.product(*map(range, map(len, every))):
        marks = pytest.mark.nightly if sum(places) % count else ()
        found.append(pytest.param(*(one[at] for one, at in zip(every, places, strict=True)), marks=marks))
        for seen, at in zip(met, places, strict=True):
            seen.update([] if marks else [at])
    assert [len(seen) for seen in met] == [len(one) for one in every], "a value is not in the sample"
    return found
