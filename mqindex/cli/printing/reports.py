"""How the reports of verify, rebuild and repair are printed, and what they exit with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqindex.cli.printing.output import command_line, print_fields, print_json, print_line, print_paragraph
from mqindex.files.places.place import Place
from mqindex.report import Report
from mqindex.wording.reports import counts, settings

REMOVED_WHEN = "the backup may be removed once the broker has started and served from what is there now"
_ACTIONS = 20


def finished(command: str, report: Report, as_json: bool, show: Callable[[], None]) -> int:
    """Print a report, by `show` for people, and return the exit code, 0: ok; 1: an error finding."""
    if as_json:
        print_json(command, report.to_dict())
    else:
        show()
    return 0 if report.ok else 1


def repairable(path: str) -> str:
    """The path that a command `repair` takes: of what is elsewhere a copy's, whose name is the reader's to choose."""
    return "COPY" if isinstance(path, Place) else path


def way_back(path: str, backup: str) -> str:
    """What undoes a change in place."""
    return f"this can be taken back: {command_line('repair', path, '--undo', backup)}"


def print_summary(report: Report) -> None:
    """The settings that were used, and how much was found."""
    print_fields(settings(report))
    if report.findings:
        print_line(f"found: {counts(report.findings)}")


def print_actions(actions: Sequence[str]) -> None:
    """One line for each action, below a word that says whether it was or would be done; of many only the first ones."""
    shown = actions if len(actions) <= _ACTIONS + 1 else actions[:_ACTIONS]
    for action in shown:
        print_paragraph(action, indent=2)
    if len(shown) < len(actions):
        print_paragraph(f"and {len(actions) - len(shown)} more: --json lists all", indent=2)
