"""What verify, rebuild and repair return: plain data, the same for every broker and engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from mqindex.errors import sentence

__all__ = [
    "Catalogue",
    "Finding",
    "Kind",
    "Obstacle",
    "RebuildReport",
    "RepairReport",
    "Report",
    "Severity",
    "Start",
    "Value",
]

Severity = Literal["error", "warning", "info"]
REPAIRED: Final = "repaired"  # the hint of what is gone after a repair


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement. Only those of severity "error" make a report not ok.

    Attributes
    ----------
    severity : "error", "warning" or "info"
    kind : str, a name of the catalogue
    path : str or None, the file or directory
    at : int or None, the byte in it
    field, expected, got : which field, the value that it should have, and the one that it has; None: does not apply
    hint : str or None, what to do
    mended_by : str or None, as of its `Kind`
    stops_start : bool, as of its `Kind`

    Examples
    --------
    >>> print(Finding("error", "missing-entries", path="index/1", at=40, expected=3, got=1, hint="run repair"))
    error missing-entries: index/1 at byte 40: expected 3, got 1; run repair
    """

    severity: Severity
    kind: str
    path: str | None = None
    at: int | None = None
    field: str | None = None
    expected: Any = None
    got: Any = None
    hint: str | None = None
    mended_by: str | None = None
    stops_start: bool = False

    def __str__(self) -> str:
        what = f"{self.severity} {self.kind}"
        return sentence(what, self.path, self.at, self.field, self.expected, self.got, self.hint)


@dataclass(frozen=True, slots=True)
class Kind:
    """What all findings of one kind have in common. A broker's catalogue has every kind; checks only fill in the rest.

    Attributes
    ----------
    name : str, the findings' `kind`; it may have several severities and hints, one for each situation
    severity : "error", "warning" or "info"
    meaning : str, one plain sentence, whatever the file
    hint : str or None, the consequence or what to do, with `{names}` that each finding fills in; None: nothing
    mended_by : str or None, the part of a repair that mends it: "index" or, of RocketMQ's stores, "consumequeue"; None:
        none is for it, and it is gone only where its file is replaced for another reason
    stops_start : bool, a broker may not start with it: it depends on the version, a setting, or how the last run ended

    Examples
    --------
    >>> missing = Kind("missing-entries", "error", "Messages have no index entries.", "{count} are missing; run repair")
    >>> print(missing.finding("index/1", at=40, expected=3, got=1, count=2))
    error missing-entries: index/1 at byte 40: expected 3, got 1; 2 are missing; run repair
    """

    name: str
    severity: Severity
    meaning: str
    hint: str | None = None
    mended_by: str | None = None
    stops_start: bool = False

    def finding(
        self,
        path: str | None,
        at: int | None = None,
        field: str | None = None,
        expected: Any = None,
        got: Any = None,
        *,
        many: str | None = None,
        **names: object,
    ) -> Finding:
        """A `Finding` of this kind. `names`: values of the hint's `{names}`; `many`: how many it represents."""
        hint = None if self.hint is None else self.hint.format(**names)
        if many is not None:
            hint = "; ".join(filter(None, [f"{many} of this kind", hint]))
        return Finding(self.severity, self.name, path, at, field, expected, got, hint, self.mended_by, self.stops_start)

    @staticmethod
    def by_name(module: Mapping[str, Any]) -> Catalogue:
        """The kinds that a module defines, alone or in tuples or dicts: of each name the usual one first.

        >>> Kind.by_name({"STRAY_FILE": Kind("stray-file", "warning", "A file that the broker skips.")}).keys()
        dict_keys(['stray-file'])
        """
        found: dict[str, tuple[Kind, ...]] = {}
        for value in module.values():
            held = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
            for kind in held:
                if isinstance(kind, Kind):
                    found[kind.name] = (*found.get(kind.name, ()), kind)
        return found


Catalogue = Mapping[str, tuple[Kind, ...]]
"""A broker's kinds of findings, by name."""


@dataclass(frozen=True, slots=True)
class Value:
    """A setting that was used, and where it came from ("given", "broker.conf", "inferred from ...", "default").

    >>> print(Value("4.9.3", "given"))
    4.9.3 (given)
    """

    value: Any
    source: str

    def __str__(self) -> str:
        return f"{self.value} ({self.source})"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A file that keeps a broker from starting: an item of `Start.obstacles`.

    Attributes
    ----------
    path, reason : str
    brokers : str, which brokers: "every", or by version like "before 5.1", or by a setting
    option : str or None, the option that says whether this broker is one of them; None: it is known, or none does
    """

    path: str
    reason: str
    brokers: str = "every"
    option: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """What the next start of a broker would do to the files as they are.

    Attributes
    ----------
    starts : bool or None, whether it would start; None: it depends on the broker's version or on a setting that is
        not known, and `obstacles` say how
    obstacles : tuple of Obstacle
    deletes : tuple of str, files that the start would delete, and directories that it would empty
    entries_deleted : int, entries of index files among them
    entries_lost : int or None, those that it would not write again from the log; None: not known
    recovers : int, segments whose indexes the start would make anew from their logs; not those of Kafka's metadata log,
        which every start makes anew
    cuts : tuple of str, logs that it would cut there; of RocketMQ, files of the log
    messages_deleted : int or None, messages of a RocketMQ log that it would delete, in the files that it cuts or
        deletes; None: not known
    lock : "held" while a broker runs, "free", "absent", or "unreadable", "elsewhere": not known
    lock_pid : int or None, the process that holds it; None: nobody does, or it cannot be seen from here
    lock_holder : str or None, that program's name

    Examples
    --------
    >>> start = Start(False, (Obstacle("store/lock", "it is no file"),))
    >>> start.starts, start.obstacles[0].brokers
    (False, 'every')
    """

    starts: bool | None
    obstacles: tuple[Obstacle, ...] = ()
    deletes: tuple[str, ...] = ()
    entries_deleted: int = 0
    entries_lost: int | None = 0
    recovers: int = 0
    cuts: tuple[str, ...] = ()
    messages_deleted: int | None = 0
    lock: str = "absent"
    lock_pid: int | None = None
    lock_holder: str | None = None


@dataclass(slots=True)
class Report:
    """What `verify` found.

    Attributes
    ----------
    path : str, the store or partition
    findings : list of Finding
    actions : list of str, what `repair` would do, one sentence each
    settings : dict, each store option that was used, with where it came from (`geometry`, `broker_version`)
    start : Start or None, what a broker's next start would do
    files, entries : int, index files and their entries
    units : int, of consume queues
    messages : int, of the commit log
    segments, batches : int, of Kafka's logs
    bytes : int, what was read of the log
    seconds : float

    Examples
    --------
    >>> report = Report("store", [Finding("warning", "stray-file", "store/index/notes.txt")])
    >>> report.ok, report.findings[0].kind
    (True, 'stray-file')
    """

    path: str
    findings: list[Finding] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    settings: dict[str, Value] = field(default_factory=dict)
    start: Start | None = None
    files: int = 0
    entries: int = 0
    units: int = 0
    messages: int = 0
    segments: int = 0
    batches: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True when no finding is an error; warnings and infos change nothing."""
        return not any(finding.severity == "error" for finding in self.findings)

    def __bool__(self) -> bool:
        """`ok`, so that `if verify(store):` tests whether the files are good.

        >>> bool(Report("store")), bool(Report("store", [Finding("error", "bad-slot", "store/index/1")]))
        (True, False)
        """
        return self.ok

    @property
    def geometry(self) -> Value | None:
        """(hash_slot_num, index_num) and their source; None where the files have none."""
        return self.settings.get("geometry")

    @property
    def broker_version(self) -> Value | None:
        """The version whose rules were applied, and its source."""
        return self.settings.get("broker_version")

    def to_dict(self) -> dict[str, Any]:
        """`ok` and every field as dicts, lists, strings and numbers, for JSON."""
        return {"ok": self.ok, **asdict(self)}


def left_or_repaired(before: Sequence[Finding], after: Sequence[Finding], *, kept: str | None = None) -> list[Finding]:
    """What a repair's second look finds, and, as infos, what it does not find any more, also not as another kind at the
    same byte. `kept`: a kind that stays.
    """
    left = {mark for one in after for mark in _marks(one)}
    gone = [one for one in before if one.severity != "info" and left.isdisjoint(_marks(one))]
    return [*after, *(one if one.kind == kept else replace(one, severity="info", hint=REPAIRED) for one in gone)]


def _marks(one: Finding) -> set[tuple[str | None, object]]:
    return {(one.path, one.kind)} | ({(one.path, one.at)} if one.at is not None else set())


@dataclass(slots=True)
class RebuildReport(Report):
    """What `rebuild` wrote: the fields of a `Report`, and these.

    Attributes
    ----------
    out_files : list of str, the published paths, in the brokers' load order
    fsync_seconds : float, how long the syncs took: of the built files, and of a new directory's names
    backup : str or None, where the directory that the result replaced is now; None: there was none
    stores : dict of RebuildReport, of several stores (log dirs, partitions) the report of each by its name below the
        output; this report has the sums, all findings, and the settings that are the same in all. Empty: of one
    """

    out_files: list[str] = field(default_factory=list)
    fsync_seconds: float = 0.0
    backup: str | None = None
    stores: dict[str, RebuildReport] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As of a `Report`."""
        stores = {name: each.to_dict() for name, each in self.stores.items()}
        return {**Report.to_dict(replace(self, stores={})), "stores": stores}


@dataclass(slots=True)
class RepairReport(RebuildReport):
    """What `repair` did, or with `dry_run` would do, in `actions`: the fields of a `RebuildReport`, and one.

    Attributes
    ----------
    dry_run : bool, nothing was written
    backup : str or None, where replaced files are
    """

    dry_run: bool = False
