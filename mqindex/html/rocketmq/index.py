"""The index: how full, how evenly filled, which keys."""

from __future__ import annotations

from mqindex.html import figures
from mqindex.html.page import Block, Cell, Column, Facts, Fields, Figure, Note, Section, Table, Tone
from mqindex.html.parts import Listed, histogram, listing, tiles
from mqindex.html.text import count, moment

_MUCH = 2.0  # times as many reads as an ordered file needs
_CELLS = 16  # of a row of the heat map's table


def index_of(facts: Facts) -> Section:
    """The section of `index` in the report's JSON."""
    index = facts.get("index")
    first: list[Listed] = [
        ("entries in good files", "entries", count), ("room in these files", "capacity", count),
        ("entries that the log gives", "log_entries", count),
        ("entries an hour, newest file", "entries_per_hour", count), ("the newest file is full at", "rolls_at", moment),
        ("keys a message, mean", "mean_keys", count),
    ]  # fmt: skip
    blocks: list[Block] = [tiles(facts, ("index",), first, large=True)]
    if index["files"]:
        newest = len(index["files"]) - 1
        blocks += [_reads(facts), _chains(facts, newest), _heat(facts, newest), _files(facts)]
    else:
        tone: Tone = "bad" if index["log_entries"] else "info"
        blocks.append(Note("There is no good index file: no query by key finds a message.", tone))
    if any(index["keys_per_message"]["counts"]):
        says = "Index entries of a message: its unique key, the keys of its KEYS, in newer versions its tags."
        path = ("index", "keys_per_message")
        blocks.append(histogram(facts, path, "index-keys", "Keys of a message", says, what="keys"))
    if index["frequent"]:
        blocks.append(_frequent(facts))
    lead = "An index file is a hash table on disk. A look-up walks the chain of a slot, from its newest entry back."
    return Section("index", "Index", blocks, lead)


def _reads(facts: Facts) -> Fields:
    index = facts.get("index")
    pays = index["cold_reads"] is not None and index["cold_reads"] >= _MUCH * index["cold_reads_ordered"]
    answer = (
        "yes, by mqindex optimize: look-ups on a cold disk would be much cheaper"
        if pays
        else "little: chains are short enough as they are"
    )
    items: list[tuple[str, Cell]] = [
        ("pages that a look-up reads when none is in memory", facts("index", "cold_reads")),
        ("the same, were the entries ordered by slot", facts("index", "cold_reads_ordered")),
        ("would it pay to order them", answer),
    ]
    return Fields(items)


def _chains(facts: Facts, i: int) -> Figure:
    path = ("index", "files", i)
    return histogram(
        facts, (*path, "chains"), "index-chains", "Chain lengths in the newest file",
        "How many slots have a chain of which length. Many long chains: few keys have many messages, or the file has "
        "too few slots. The last bar is that length or longer.",
        ideal=(*path, "chains_expected"), what="length",
    )  # fmt: skip


def _heat(facts: Facts, i: int) -> Figure:
    cells = facts.get("index", "files", i, "heat")
    each = max(facts.get("index", "files", i, "slots") / max(len(cells), 1), 1)
    rows: list[list[Cell]] = [
        [str(first), *(facts("index", "files", i, "heat", at) for at in range(first, min(first + _CELLS, len(cells))))]
        for first in range(0, len(cells), _CELLS)
    ]
    rows[-1] += [None] * (_CELLS + 1 - len(rows[-1]))
    columns = (Column("stretch", number=True), *(Column(f"+{at}", number=True) for at in range(_CELLS)))
    says = (
        "Slots in use in equal stretches of the newest file's slots, from the first to the last; dark is full. "
        "Even shades: the keys' hashes are spread well. Light everywhere: the file is young, or keys are few."
    )
    table = Table("Slots in use in each stretch", columns, rows)
    return Figure(figures.heat("index-heat", cells, each), "Slots in use", says, data=table)


def _files(facts: Facts) -> Table:
    files = len(facts.get("index", "files"))
    columns: list[Listed] = [
        ("file", "name", None), ("entries", "entries", count), ("slots used", "slots_used", count),
        ("expected", "slots_expected", _whole), ("longest chain", "longest", count),
        ("cold reads", "cold_reads", count), ("expected", "cold_reads_expected", count),
        ("other keys", "other_keys", count), ("from", "begin_timestamp", moment),
    ]  # fmt: skip
    caption = "Index files, the newest first. Expected: if as many entries, all of other keys, fell at random"
    whole = files + facts.get("index", "more_files")
    return listing(facts, ("index", "files"), caption, columns, rows=reversed(range(files)), whole=whole)


def _whole(number: float) -> str:
    return count(round(number))


def _frequent(facts: Facts) -> Table:
    columns: list[Listed] = [
        ("hash", "key_hash", str), ("topic", "topic", None), ("entries", "entries", count),
        ("property", "property", None), ("a message at", "phy_offset", count),
    ]  # fmt: skip
    caption = "Most frequent keys: their look-ups walk the longest chains"
    if any(one["key"] for one in facts.get("index", "frequent")):
        columns.insert(0, ("key", "key", None))
    else:
        caption += ". Keys may be of customers: only --show-keys prints them"
    return listing(facts, ("index", "frequent"), caption, columns, bars=["entries"])
