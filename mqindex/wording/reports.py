"""What a report says of the whole, in words: how much it was, what was found, which settings were used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mqindex._words import plural
from mqindex.report import REPAIRED, Finding, RebuildReport, RepairReport, Report
from mqindex.wording.text import size

_ASKED = {
    "geometry-unknown": ("--broker-conf", "FILE"),
    "queue-file-size-unknown": ("--broker-conf", "FILE"),
    "delay-level-unknown": ("--broker-conf", "FILE"),
    "broker-version-unknown": ("--broker-version", "V"),
}


def counts(findings: Iterable[Finding]) -> str:
    """How many findings of each severity, in words.

    >>> counts([Finding("error", "a"), Finding("info", "b"), Finding("info", "c", hint="repaired")])
    '1 error, 1 repaired, 1 info'
    """
    of = Counter(REPAIRED if finding.hint == REPAIRED else finding.severity for finding in findings)
    words = [
        plural(of["error"], "error") if of["error"] else "",
        plural(of["warning"], "warning") if of["warning"] else "",
        f"{of[REPAIRED]} repaired" if of[REPAIRED] else "",
        f"{of['info']} info" if of["info"] else "",
    ]
    return ", ".join(word for word in words if word)


def work_done(report: Report) -> str:
    """How much was read or written, in words."""
    files = "file" if isinstance(report, RebuildReport) else "index file"  # of what was written, of what was read
    parts = [plural(report.files, files), plural(report.entries, "index entry")]
    if report.units:
        parts.append(plural(report.units, "unit"))
    if isinstance(report, RepairReport):  # these were read only
        return f"{', '.join(parts)}; {report.seconds:.1f} s"
    if report.messages:
        parts.append(plural(report.messages, "message"))
    if report.segments:
        parts += [plural(report.segments, "segment"), plural(report.batches, "batch")]
    kind = "log" if report.segments else "commit log"
    log = f"; a {kind} of {size(report.bytes)}" if report.bytes else ""
    return f"{', '.join(parts)}{log}; {report.seconds:.1f} s"


def beyond_repair(findings: Iterable[Finding]) -> str:
    """The kinds of errors that a repair does not mend, in words: their hints say what does.

    >>> bad = Finding("error", "log-bad-crc", hint="restore the file")
    >>> beyond_repair([bad, bad, Finding("error", "missing-entries", mended_by="index")])
    'log-bad-crc (2 times)'
    """
    of = Counter(one.kind for one in findings if one.severity == "error" and one.mended_by is None)
    return ", ".join(kind if times == 1 else f"{kind} ({times:,} times)" for kind, times in of.items())


def asked_options(report: Report) -> list[str]:
    """The options that a repair requires, by the findings that say so; the reader fills in their values.

    >>> asked_options(Report("store", [Finding("warning", "geometry-unknown"), Finding("warning", "stray-file")]))
    ['--broker-conf', 'FILE']
    """
    asked = dict.fromkeys(_ASKED[one.kind] for one in report.findings if one.kind in _ASKED)
    return [word for option in asked for word in option]


def settings(report: Report) -> list[tuple[str, object]]:
    """Each setting that was used, and where it came from; where the time went."""
    fields: list[tuple[str, object]] = [
        (name.replace("_", " "), _value(setting.value, setting.source)) for name, setting in report.settings.items()
    ]
    if isinstance(report, RebuildReport) and report.fsync_seconds >= 1.0:
        fields.append(("fsync", f"{report.fsync_seconds:.1f} s of it"))
    return fields


def _value(value: object, source: str) -> str:
    if isinstance(value, tuple | list) and len(value) == 2:
        return f"{plural(value[0], 'slot')}, {plural(value[1], 'entry')} ({source})"
    return f"{'none' if value is None else value} ({source})"
