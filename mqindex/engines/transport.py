"""How stages and items travel to the workers of a cluster, and results and errors back, as bytes.

An engine brings its own pickler, which must take local functions (cloudpickle does), and what reads it.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from mqindex.errors import RebuildError

Dumps = Callable[[Any], bytes]
Loads = Callable[[bytes], Any]


def group_by_weight(weights: Sequence[int], groups: int) -> list[range]:
    """At most `groups` ranges of neighbours, none empty, of about equal weight.

    >>> group_by_weight([1, 1, 1, 9, 1, 1], 3)
    [range(0, 3), range(3, 4), range(4, 6)]
    """
    if len(weights) <= groups:
        return [range(i, i + 1) for i in range(len(weights))]
    share = max(1, sum(weights)) / groups
    ranges, start, before, group = [], 0, 0.0, 0
    for i, weight in enumerate(weights):
        here = min(int((before + weight / 2) / share), groups - 1)  # an item goes to the group where its middle is
        if here > group and i > start:
            ranges.append(range(start, i))
            start = i
        group = here
        before += weight
    return [*ranges, range(start, len(weights))]


def run_packed(stage: bytes, items: bytes, loads: Loads = pickle.loads) -> list[Any]:
    """In a worker: a pickled stage over a pickled sequence of items."""
    work = loads(stage)
    return [work(item) for item in loads(items)]


def outcome(work: Callable[[], Any], dumps: Dumps, loads: Loads = pickle.loads) -> bytes:
    """In a worker: what `work` returned or raised, (value, error, traceback) pickled.

    >>> results({0: outcome(lambda: 1 + 1, pickle.dumps)})
    {0: 2}
    """
    try:
        return dumps((work(), None, None))
    except Exception as error:  # whatever a stage raises belongs to the caller; the cluster must not retry it
        return dumps((None, portable(error, dumps, loads), traceback.format_exc()))


def results(outcomes: dict[int, bytes], loads: Loads = pickle.loads) -> dict[int, Any]:
    """The value of each task, by the tasks' numbers in order; raises the first error among them.

    The bytes are removed from `outcomes` one by one: of a long log they take as much memory as the values.
    """
    values = {}
    for task in sorted(outcomes):
        values[task], error, where = loads(outcomes.pop(task))
        if error is not None:
            raise error from _WorkerTraceback(where)
    return values


class _WorkerTraceback(Exception):
    """Shown as the cause of an error that a stage raised in a worker: where it happened there."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


def portable(error: Exception, dumps: Dumps, loads: Loads) -> Exception:
    """The error, if it travels; else one that says the same."""
    try:
        if type(loads(dumps(error))) is type(error):
            return error
    except Exception:
        pass
    return RebuildError(f"a stage raised {type(error).__name__}: {error}")
