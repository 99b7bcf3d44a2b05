"""Runs a case: contenders in turn (A B A B), a fresh process each, their answers held against each other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from statistics import median
from typing import Any

from bench import java, memory, processes
from bench.case import Case, Contender
from bench.numbers import number, summary
from bench.workshop import Workshop

__all__ = ["AnswerError", "run_case"]

Say = Callable[[str], None]


class AnswerError(AssertionError):
    """Contenders of one case, or a contender and the recorded answer, disagree."""


def run_case(case: Case, shop: Workshop, say: Say) -> dict[str, Any]:
    """The case's part of a record."""
    contenders = _present(case, say)
    outcomes: dict[str, list[processes.Outcome]] = {contender.name: [] for contender in contenders}
    for fork in range(shop.scale.forks(case.forks)):
        # Turn about: neither contender always runs first.
        for contender in contenders if fork % 2 == 0 else contenders[::-1]:
            outcomes[contender.name].append(_run(case, contender, shop))
            say(f"    {contender.name}: {_glance(outcomes[contender.name][-1])}")
    answer = _agreed(case, contenders, outcomes)
    measured = _measured(outcomes)
    goals = [goal for goal in case.goals if {goal.ours, goal.peer or goal.ours} <= set(measured)]
    return {
        "title": case.title,
        "numbers": [number(goal, measured) for goal in goals],
        "answer": answer,
        "measured": measured,
        "peak_rss_mib": {name: _mib(run.peak_rss for run in runs) for name, runs in outcomes.items()},
    }


def check_answer(case: Case, answer: dict[str, Any]) -> None:
    """Hold an answer computed at the check's scale against the one that stands in the case."""
    wrong = {name for name in case.answer if name in answer and answer[name] != case.answer[name]}
    for name in sorted(wrong):
        raise AnswerError(f"{case.name}: {name}: expected {case.answer[name]}, got {answer[name]}")


def _present(case: Case, say: Say) -> list[Contender]:
    present = []
    for contender in case.contenders:
        missing = contender.missing()
        if missing:
            say(f"    {contender.name}: left out, not here: {missing}")
        else:
            present.append(contender)
    for broker in sorted({broker for contender in present if (broker := java.broker_of(contender.runs))}):
        java.build(broker)
    return present


def _run(case: Case, contender: Contender, shop: Workshop) -> processes.Outcome:
    scratch = shop.scratch()
    try:
        command = contender.command(shop, scratch)
        memory.read(case.files(shop) if shop.scale.timed else [])
        memory.warm(shop.warm_mib(contender.warm) if contender.warm else 0)
        return processes.run(command, scratch=scratch, watch=case.watch)
    finally:
        if not case.keeps:
            shutil.rmtree(scratch, ignore_errors=True)


def _agreed(case: Case, contenders: list[Contender], outcomes: dict[str, list[processes.Outcome]]) -> dict[str, Any]:
    agreed: dict[str, Any] = {}
    for contender in contenders:
        for outcome in outcomes[contender.name]:
            for name, value in outcome.answer.items():
                fact = contender.facts + name
                if agreed.setdefault(fact, value) != value:
                    other = agreed[fact]
                    raise AnswerError(f"{case.name}: {fact}: {contender.name} says {value}, another run {other}")
    return agreed


def _measured(outcomes: dict[str, list[processes.Outcome]]) -> dict[str, dict[str, Any]]:
    measured = {}
    for contender, runs in outcomes.items():
        for measure, first in runs[0].measures.items() if runs else ():
            samples = [median(run.measures[measure]["seconds"]) for run in runs]
            measured[f"{contender}/{measure}"] = summary(samples, first["units"])
        if any(run.peak_private for run in runs):
            # Bytes, not seconds; the same shape, so that goals can name it.
            measured[f"{contender}/private"] = summary([float(run.peak_private) for run in runs], 1)
    return measured


def _glance(outcome: processes.Outcome) -> str:
    parts = []
    for name, measure in outcome.measures.items():
        seconds = median(measure["seconds"])
        parts.append(f"{name} {seconds:.3f} s ({seconds / measure['units'] * 1e9:.1f} ns each)")
    return ", ".join(parts) or f"{outcome.peak_private / 2**20:.0f} MiB private"


def _mib(sizes: Any) -> int:
    return round(max(sizes, default=0) / 2**20)
