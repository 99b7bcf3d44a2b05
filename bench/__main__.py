"""`python -m bench`: are the goals met? `run`: measure. `check`: answers only. `report`: what users read."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from typing import Any

from bench import goals as goals_of
from bench import machine
from bench.cases import CASES
from bench.processes import ContenderError
from bench.records import Record, newest
from bench.runner import AnswerError, check_answer, run_case
from bench.scale import CHECK, SCALES, Scale
from bench.workshop import Workshop, space_needed


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 done, 1 a case failed or the report is stale, 2 trouble."""
    chosen = _parser().parse_args(arguments)
    if chosen.command == "run":
        return run(chosen.cases, [SCALES[name] for name in chosen.scale or ["full"]], chosen.work)
    if chosen.command == "check":
        return check(chosen.cases, chosen.work)
    if chosen.command == "report":
        return report(check=chosen.check)
    return goals()


def goals() -> int:
    """Print what the cases ask for, and whether each machine's newest record meets it."""
    tables = [f"{record['machine']['cpu']}, {record['date']}\n\n{goals_of.document(record)}\n" for record in _newest()]
    try:
        print(*tables, sep="\n", flush=True)
    except BrokenPipeError:  # `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def report(*, check: bool) -> int:
    """Write what users read of each machine's newest record, or see whether it is there."""
    from bench import report as documents  # it needs the kernels

    records = _newest()
    if not check:
        documents.write(records)
    elif wrong := documents.stale(records):
        print(f"not of the newest records: {', '.join(wrong)}; run: python -m bench report", file=sys.stderr)
        return 1
    return 0


def run(names: list[str], scales: list[Scale], work: str) -> int:
    """Measure cases and record them. Without names, those that today's record lacks at this commit."""
    record, commit, failed = Record(), machine.commit(), False
    for scale in scales:
        wanted = names or [name for name in CASES if not record.has(scale.name, name, commit)]
        _require_space(work, scale)
        shop = Workshop(work, scale)
        try:
            total = sum(CASES[name].seconds(shop) for name in wanted)
            print(f"{scale.name}: {len(wanted)} cases, about {_minutes(total)}, and the making of keys and log")
            for name in wanted:
                failed |= not _measure(name, shop, record, commit)
        finally:
            shop.close()
    return int(failed)


def check(names: list[str], work: str) -> int:
    """Run every case tiny, for its answer."""
    failed = False
    shop = Workshop(work, CHECK)
    try:
        for name in names or list(CASES):
            print(f"{name}", flush=True)
            try:
                part = run_case(CASES[name], shop, lambda line: print(line) if "left out" in line else None)
                check_answer(CASES[name], part["answer"])
                print(f"    {part['answer']}", flush=True)
            except (AnswerError, ContenderError) as error:
                failed = True
                print(f"    FAILED: {error}", file=sys.stderr)
    finally:
        shop.close()
    return int(failed)


def _measure(name: str, shop: Workshop, record: Record, commit: str) -> bool:
    case = CASES[name]
    print(f"  {name}: {case.title}, about {_minutes(case.seconds(shop))}", flush=True)
    began = time.perf_counter()
    try:
        part = run_case(case, shop, lambda line: print(line, flush=True))
    except (AnswerError, ContenderError) as error:
        print(f"    FAILED: {error}", file=sys.stderr)
        return False
    part["took_seconds"] = round(time.perf_counter() - began, 1)
    record.put(shop.scale.name, name, commit, part)
    print(f"    recorded after {_minutes(part['took_seconds'])}", flush=True)
    return True


def _newest() -> list[dict[str, Any]]:
    records = newest()
    if not records:
        raise SystemExit("no records yet: python -m bench run")
    return records


def _require_space(work: str, scale: Scale) -> None:
    os.makedirs(work, exist_ok=True)
    need, free = space_needed(scale), shutil.disk_usage(work).free
    if free < need:
        raise SystemExit(f"{work}: expected {need >> 30} GiB free, got {free >> 30} GiB; pass --work DIR")


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Benchmarks; alone: whether the newest record meets its goals."
    )
    commands = parser.add_subparsers(dest="command")
    running = commands.add_parser("run", help="measure and record")
    running.add_argument("--scale", action="append", choices=list(SCALES), help="may be repeated; default: full")
    checking = commands.add_parser("check", help="run every case tiny for its answer; nothing is timed")
    for command in (running, checking):
        command.add_argument("cases", nargs="*", metavar="CASE", choices=[*CASES, []], help=", ".join(CASES))
        command.add_argument(
            "--work", default=os.path.join(machine.ROOT, "build", "bench"), metavar="DIR", help="default: %(default)s"
        )
    reporting = commands.add_parser("report", help="write bench/README.md, the plots, and the rows of README.md")
    reporting.add_argument("--check", action="store_true", help="write nothing: are they of the newest record?")
    return parser


if __name__ == "__main__":
    sys.exit(main())
