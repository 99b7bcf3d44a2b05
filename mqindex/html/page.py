"""What a page is made of: sections of blocks. Blocks hold text and facts; `mqindex.html.render` makes HTML of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mqindex.html.drawing import Picture
from mqindex.html.text import count
from mqindex.report import Severity
from mqindex.wording.findings import FindingGroup

Tone = Literal["good", "warn", "bad", "info"]
ROWS = 40  # of a table; of longer ones --json lists all


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of the report's JSON, and how it is shown. The page carries all three, so that a test compares them.

    Attributes
    ----------
    at : str, the JSON pointer (RFC 6901) of the value
    value : what is there; None: not known
    shown : str
    """

    at: str
    value: Any
    shown: str

    def __str__(self) -> str:
        return self.shown


class Facts:
    """The report's JSON, from which a page takes all its numbers.

    >>> facts = Facts({"log": {"files": [{"a/b": 1024}]}})
    >>> facts("log", "files", 0, "a/b")
    Fact(at='/log/files/0/a~1b', value=1024, shown='1,024')
    >>> facts("log", "files", 0, "c").shown, len(facts.get("log", "files"))
    ('not known', 1)
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def get(self, *path: str | int) -> Any:
        """The value there; None: there is nothing."""
        found: Any = self.document
        for step in path:
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                return None
        return found

    def __call__(self, *path: str | int, form: Callable[[Any], str] = count) -> Fact:
        """The fact there; `form`: how its value is shown."""
        value = self.get(*path)
        pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
        return Fact(pointer, value, "not known" if value is None else form(value))


Cell = Fact | str | None
"""What a cell shows; None: nothing."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `number`: its cells are set flush right; `bar`: a bar below each shows how large it is."""

    title: str
    number: bool = False
    bar: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The first cell of a row names the row. `count`: how many rows there are, where not all are given.

    Examples
    --------
    >>> table = Table("Queues", (Column("queue"), Column("messages", number=True)), [("0", "12")] * 50)
    >>> len(table.shown), table.more
    (40, 10)
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    count: int | None = None
    limit: int = ROWS

    @property
    def shown(self) -> Sequence[Sequence[Cell]]:
        """The rows that the page has."""
        return self.rows[: self.limit]

    def part(self, column: int, cell: Cell) -> int:
        """How large the number of a cell is, in percent of the column's largest."""
        cells = [row[column] for row in self.rows]
        largest = max((one.value or 0 for one in cells if isinstance(one, Fact)), default=0)
        return round(100 * max(cell.value or 0, 0) / largest) if isinstance(cell, Fact) and largest > 0 else 0

    @property
    def more(self) -> int:
        """How many it leaves out."""
        return (len(self.rows) if self.count is None else self.count) - len(self.shown)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its words.

    Attributes
    ----------
    picture : from `mqindex.html.figures`; its name is unique in the page, of letters, digits and `-`
    title : str, the heading above it
    says : str, one or two sentences on what it shows, also for readers who cannot see it
    legend : pairs of a tone of the palette and its meaning
    data : Table or None, the numbers that are drawn
    """

    kind: ClassVar[str] = "figure"
    picture: Picture
    title: str
    says: str
    legend: Sequence[tuple[str, str]] = ()
    data: Table | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """Names and facts in a row of tiles (`large`), or one below the other."""

    kind: ClassVar[str] = "fields"
    items: Sequence[tuple[str, Cell]]
    large: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence of some importance, which its tone shows."""

    kind: ClassVar[str] = "note"
    text: str
    tone: Tone = "info"


@dataclass(frozen=True, slots=True)
class Commands:
    """What to type, a line each, quoted for a shell; `says`: what it does."""

    kind: ClassVar[str] = "commands"
    says: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Actions:
    """What would be done, a sentence each."""

    kind: ClassVar[str] = "actions"
    says: str
    lines: Sequence[str]
    limit: int = 8


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings, gathered by kind."""

    kind: ClassVar[str] = "findings"
    groups: Sequence[FindingGroup]
    tones: ClassVar[Mapping[Severity, Tone]] = {"error": "bad", "warning": "warn", "info": "info"}


Block = Table | Figure | Fields | Note | Commands | Actions | Findings


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page below a heading of its own; `name`: unique in the page. One without blocks is left out."""

    name: str
    title: str
    blocks: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first part to read: the result in one line; then questions with their answers."""

    tone: Tone
    headline: str
    answers: Sequence[tuple[str, str]]
    blocks: Sequence[Block] = ()


@dataclass(slots=True)
class Page:
    """A whole page. `kicker`: what it is about, in a word or two above the title; `made`: when, by what."""

    kicker: str
    title: str
    made: str
    verdict: Verdict
    sections: list[Section] = field(default_factory=list)

    def add(self, sections: Iterable[Section]) -> None:
        """Append the sections that have blocks."""
        self.sections += [section for section in sections if section.blocks]
