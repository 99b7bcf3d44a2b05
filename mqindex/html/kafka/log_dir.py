"""A log dir: which partitions fill it, and how they are."""

from __future__ import annotations

from mqindex.html import figures
from mqindex.html.page import Block, Facts, Figure, Note, Section, Table
from mqindex.html.parts import Listed, listing, name_of, tiles
from mqindex.html.text import count, moment, size, times

_RANKED = 15
_LOST = (
    "Time indexes are lost. A broker makes empty ones and says nothing: a search by time does not find these records, "
    "and retention by time goes by when the log files were written. A repair brings the time indexes back."
)


def log_dir_of(facts: Facts) -> Section:
    """The section of all partitions."""
    partitions = facts.get("partitions")
    totals: list[Listed] = [
        ("partitions", "partitions", count), ("bytes", "bytes", size), ("records", "records", count),
        ("batches", "batches", count), ("segments", "segments", count),
    ]  # fmt: skip
    if facts.get("totals", "unread"):
        totals.append(("segments that cannot be read", "unread", count))
    blocks: list[Block] = [tiles(facts, ("totals",), totals, large=True)]
    if not partitions:
        return Section("log-dir", "Log dir", [Note("The log dir has no partition.")])
    if any(one["time_indexes_lost"] for one in partitions):
        blocks.append(lost_times())
    largest = partitions[:_RANKED]
    picture = figures.ranked(
        "log-dir-bytes", [name_of(one["name"]) for one in largest], [one["totals"]["bytes"] for one in largest], size
    )
    blocks += [
        Figure(picture, "Largest partitions", "Bytes of the logs of each partition."),
        _partitions(facts),
        *codecs_of(facts, ("codecs",), "log-dir", "Compression in the log dir"),
    ]
    if facts.get("others", "partitions"):
        blocks.append(Note("Smaller partitions are not listed. All of them together:"))
        blocks.append(tiles(facts, ("others",), totals[:5]))
    return Section("log-dir", "Partitions", blocks, "What fills the log dir; each number counts every batch.")


def lost_times() -> Note:
    """The consequences of lost time indexes."""
    return Note(_LOST, "bad")


def _partitions(facts: Facts) -> Table:
    columns: list[Listed] = [
        ("partition", "name", None), ("errors", "errors", count), ("times lost", "time_indexes_lost", count),
        ("bytes", "totals/bytes", size), ("records", "totals/records", count), ("segments", "totals/segments", count),
        ("oldest", "min_timestamp", moment), ("newest", "max_timestamp", moment),
    ]  # fmt: skip
    caption = "Partitions by bytes. Times lost: segments whose time index is missing, or has none of its entries"
    return listing(facts, ("partitions",), caption, columns, limit=100)


def codecs_of(facts: Facts, path: tuple[str | int, ...], name: str, title: str) -> list[Block]:
    """Codecs and how well they compress, at `path`; nothing where there is no batch."""
    codecs = facts.get(*path)
    if not codecs:
        return []
    columns: list[Listed] = [
        ("codec", "codec", None), ("bytes", "bytes", size), ("batches", "batches", count),
        ("records", "records", count), ("compression ratio", "ratio", times),
        ("batches decompressed for it", "sampled", count),
    ]  # fmt: skip
    table = listing(facts, path, "Batches by codec", columns)
    says = "Bytes of the batches of each codec, as they are stored. The ratio, how many times as long the records are "
    says += "when they are decompressed, is from a sample of batches."
    picture = figures.ranked(f"{name}-codecs", [one["codec"] for one in codecs], [one["bytes"] for one in codecs], size)
    return [Figure(picture, title, says), table]
