"""One partition in detail: segments, time against offset, batches, indexes, transactions, epochs, producers."""

from __future__ import annotations

from collections.abc import Iterable

from mqindex.html.figures import LinePart, in_calendar, ranked, stretches, time_line
from mqindex.html.kafka.log_dir import codecs_of, lost_times
from mqindex.html.page import Block, Facts, Fields, Figure, Note, Section
from mqindex.html.parts import Listed, histogram, listing, name_of, tiles
from mqindex.html.text import count, moment, size, span

_DRAWN = 16  # segments
_STATES = {"good": "s3", "differs": "s3", "none": "s6", "unknown": "warn", "missing": "bad", "wrong": "bad"}
_LEGEND = (("s3", "time index sound"), ("bad", "time index missing or wrong"), ("warn", "the log cannot be read"))


def partition_of(facts: Facts, number: int) -> list[Section]:
    """The sections of the partition of this number."""
    one = ("partitions", number)
    name = name_of(facts.get(*one, "name"))
    first: list[Listed] = [
        ("bytes", "totals/bytes", size), ("records", "totals/records", count), ("batches", "totals/batches", count),
        ("next offset", "next_offset", count), ("oldest record", "min_timestamp", moment),
        ("newest record", "max_timestamp", moment),
    ]  # fmt: skip
    blocks: list[Block] = [tiles(facts, one, first, large=True)]
    if facts.get(*one, "time_indexes_lost"):
        blocks += [lost_times(), Fields([("time indexes lost", facts(*one, "time_indexes_lost"))])]
    blocks += _segments(facts, *one)
    lead = (
        "The partition with the most errors, or else the largest, in detail." if facts.get("kind") == "log dir" else ""
    )
    sections = [Section("partition", f"Partition {name}", blocks, lead)]
    if facts.get(*one, "stretches"):
        sections.append(Section("times", f"Times of {name}", list(_times(facts, *one))))
        sections.append(Section("batches", f"Batches of {name}", list(_batches(facts, *one))))
    sections.append(Section("writers", f"Writers of {name}", list(_writers(facts, *one))))
    return sections


# ---- segments


def _segments(facts: Facts, *one: str | int) -> Iterable[Block]:
    segments = facts.get(*one, "segments")
    numbers: list[Listed] = [
        ("segments", "totals/segments", count), ("offset index, entries per MiB", "offset_entries_per_mib", count),
        ("time index, entries per MiB", "time_entries_per_mib", count), ("log start offset", "log_start_offset", count),
        ("recovery point", "recovery_point", count), ("high watermark", "high_watermark", count),
    ]  # fmt: skip
    columns: list[Listed] = [
        ("base offset", "base_offset", str), ("bytes", "bytes", size), ("batches", "batches", count),
        ("records", "records", count), ("oldest", "min_timestamp", moment), ("newest", "max_timestamp", moment),
        ("retention goes by", "retention_timestamp", moment),
        ("offset index", "offset_index/state", None), ("entries", "offset_index/entries", count),
        ("time index", "time_index/state", None), ("entries", "time_index/entries", count),
        ("transaction index", "transaction_index/state", None), ("entries", "transaction_index/entries", count),
    ]  # fmt: skip
    whole = facts.get(*one, "totals", "segments")
    table = listing(facts, (*one, "segments"), "Segments", columns, whole=whole, limit=100)
    drawn = [each for each in segments[-_DRAWN:] if _is_timed(each)]
    if drawn:
        lines = [(str(each["base_offset"]), [_drawn(each)]) for each in drawn]
        begin = min(each["min_timestamp"] for each in drawn)
        end = max(each["max_timestamp"] for each in drawn)
        says = "The newest segments by their base offsets: from the oldest to the newest time of their batches."
        picture = stretches("partition-segments", lines, begin, end)
        yield Figure(picture, "Segments over time", says, _LEGEND, table)
    else:
        yield table
    yield tiles(facts, one, numbers)


def _is_timed(segment: dict[str, int | None]) -> bool:
    return all(in_calendar(segment[name] or 0) for name in ("min_timestamp", "max_timestamp"))


def _drawn(segment: dict[str, dict[str, str]]) -> LinePart:
    tone = _STATES[segment["time_index"]["state"]]
    return LinePart(float(segment["min_timestamp"]), float(segment["max_timestamp"]), tone)  # type: ignore[arg-type]


# ---- times


def _times(facts: Facts, *one: str | int) -> Iterable[Block]:
    found = facts.get(*one, "stretches")
    order: list[Listed] = [
        ("batches out of order of time", "late_batches", count), ("furthest back", "furthest_back", span),
        ("batches without a time", "untimed_batches", count),
        ("batches with the broker's time", "append_time_batches", count),
    ]  # fmt: skip
    yield tiles(facts, one, order)
    timed = [each for each in found if _is_timed(each)]
    if not timed:
        return
    columns: list[Listed] = [
        ("from offset", "offset", count), ("to offset", "last_offset", count),
        ("least time", "min_timestamp", moment), ("greatest time", "max_timestamp", moment),
        ("records", "records", count), ("bytes", "bytes", size),
    ]  # fmt: skip
    table = listing(facts, (*one, "stretches"), "Time against offset", columns, limit=200)
    lines = [
        (tone, [(each[name], each["last_offset"]) for each in timed])
        for tone, name in (("s2", "min_timestamp"), ("s1", "max_timestamp"))
    ]
    says = (
        "Offsets grow upwards, time to the right. One line that rises: records are in order of time. Lines that part "
    )
    says += "or go back: producers whose clocks differ, or that send late."
    legend = (("s1", "greatest time in a stretch of the log"), ("s2", "least time"))
    picture = time_line("partition-times", lines)
    yield Figure(picture, "Time against offset", says, legend, table)


# ---- batches


def _batches(facts: Facts, *one: str | int) -> Iterable[Block]:
    says = "Batches by the bytes that they take in the log: from each size up to the next."
    path = (*one, "batch_bytes")
    yield histogram(facts, path, "partition-batch-bytes", "Batch sizes", says, form=size, what="bytes from")
    says = "Batches by how many records they hold: from each number up to the next."
    path = (*one, "batch_records")
    yield histogram(facts, path, "partition-batch-records", "Records per batch", says, what="records from")
    yield from codecs_of(facts, (*one, "codecs"), "partition", "Compression")
    if facts.get(*one, "wrapped"):
        yield Note("Compressed messages of the old formats count as one record each, whatever is in them.")
        yield Fields([("such messages", facts(*one, "wrapped"))])


# ---- who wrote


def _writers(facts: Facts, *one: str | int) -> Iterable[Block]:
    path = (*one, "transactions")
    written: list[Listed] = [
        ("transactions committed", "committed", count), ("aborted", "aborted", count), ("open", "open", count),
        ("batches in transactions", "batches", count), ("markers", "control_batches", count),
    ]  # fmt: skip
    if any(facts.get(*path, name) for _, name, _ in written):
        yield tiles(facts, path, written)
        if not facts.get(*path, "whole"):
            yield Note("A segment cannot be read to its end: there may be more transactions.", "warn")
    if facts.get(*path, "listed"):
        columns: list[Listed] = [("producer id", "producer_id", str), ("first offset", "first_offset", str)]
        caption = "Open transactions, the oldest first: who reads only what is committed waits there"
        yield listing(facts, (*path, "listed"), caption, columns, whole=facts.get(*path, "open"))
    yield from _producers(facts, *one, "producers")
    if facts.get(*one, "leader_epochs"):
        columns = [("leader epoch", "epoch", count), ("from offset", "base_offset", count)]
        found = facts.get(*one, "leader_epoch_count")
        caption = "Leader epochs of the batches"
        yield listing(facts, (*one, "leader_epochs"), caption, columns, whole=found, limit=100)


def _producers(facts: Facts, *path: str | int) -> Iterable[Block]:
    biggest = facts.get(*path, "biggest")
    if not biggest:
        return
    least = "" if facts.get(*path, "whole") else "at least so many "
    yield Fields([(f"{least}producers with an id", facts(*path, "count")), ("their batches", facts(*path, "batches"))])
    columns: list[Listed] = [
        ("producer id", "producer_id", str), ("bytes", "bytes", size), ("batches", "batches", count),
        ("records", "records", count),
    ]  # fmt: skip
    table = listing(facts, (*path, "biggest"), "Largest producers", columns)
    labels = [str(each["producer_id"]) for each in biggest]
    picture = ranked("partition-producers", labels, [each["bytes"] for each in biggest], size)
    says = "Bytes that the largest producers wrote, by their ids. Producers without an id are not distinguished."
    yield Figure(picture, "Largest producers", says, data=table)
