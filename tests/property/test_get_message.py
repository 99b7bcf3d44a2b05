"""Pull requests on random queues: the twin's answers, and the same messages from one bulk call."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore
from tests.conftest import SeededRandom
from tests.reference.get_message import Queue, get_message
from tests.reference.java import java_hash
from tests.support.log_writer import LogMessage, LogWriter, frame_size
from tests.support.queued_store import UNITS_A_FILE, write_units

FILE_SIZE = 2048
BLANK = (0, 2**31 - 1, 0)  # what a broker fills a queue's first file with that begins later
TAGS = ("Aa", "BB", "TagC", None)  # the first two have one hash
EXPRESSIONS = (None, "*", "Aa", "BB || TagC", "nobody", " || ", "Aa||BB||TagC")


@pytest.mark.parametrize("run", range(12))
def test_answers_are_the_twin_s(run: int, rng: SeededRandom, tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=FILE_SIZE)
    messages = [LogMessage("T", tags=rng.choice(TAGS), body=bytes(rng.randrange(60))) for _ in range(150)]
    places = writer.write(*messages)
    tag_of = {place: message.tags for place, message in zip(places, messages, strict=True)}
    end = writer.position
    removed = rng.randrange(3)  # files at the log's begin that the broker has deleted
    for path in sorted((tmp_path / "commitlog").iterdir())[:removed]:
        path.unlink()
    units = [
        unit_beyond(rng, end) if rng.random() < 0.05 else (place, frame_size(message), code_of(message.tags))
        for place, message in zip(places, messages, strict=True)
    ]
    # where the log's begin was deleted, the queue's minimum moves to the first unit that leads into the log
    first = rng.choice([0, 7, UNITS_A_FILE]) if removed == 0 else 0
    write_units(tmp_path, "T", 0, [BLANK] * (first % UNITS_A_FILE) + units, first=first - first % UNITS_A_FILE)
    with MessageStore.open(tmp_path) as opened:
        found = opened.consume_queue("T", 0)
        assert found is not None
        low, high = found.min_offset_in_queue, found.max_offset_in_queue
        queue = Queue(low, units[low - first :], UNITS_A_FILE)
        for _ in range(60):
            offset, most = rng.randrange(high + 5), rng.choice([1, 3, 32, 1000])
            expression = rng.choice(EXPRESSIONS)
            wanted = tags_of(expression)
            hashes = None if wanted is None else set(map(java_hash, wanted))
            twin = get_message(queue, end, FILE_SIZE, offset, most, hashes, removed * FILE_SIZE)
            answer = opened.get_message("T", 0, offset, max_msg_nums=most, tags=expression)
            assert (answer.status, answer.next_begin_offset) == (twin.status, twin.next_begin_offset)
            kept = [place for place in twin.phy_offsets if not wanted or tag_of[place] in wanted]
            assert [message.phy_offset for message in answer.messages] == kept
            rest = units[offset - first :] if offset >= low else []
            check_bulk(opened, offset, most, expression, rest, end, removed)
            check_places(opened, offset, most, hashes, expression, rest, end, removed)


def check_bulk(
    opened: MessageStore, offset: int, most: int, expression: str | None, units: list[tuple[int, int, int]], end: int,
    removed: int,
) -> None:  # fmt: skip
    """In bulk every unit is looked at that leads to a whole message, and strings count at once."""
    wanted = tags_of(expression)
    single = {m.phy_offset: m for unit in units if (m := opened.look_message_by_offset(unit[0])) is not None}
    mine = [p for p, size, _ in units if p in single and single[p].size == size]
    mine = [p for p in mine if wanted is None or single[p].tags in wanted][:most]
    bulk = opened.get_messages("T", 0, offset, max_msg_nums=most, tags=expression, columns=["phy_offset", "tags"])
    assert bulk.messages["phy_offset"].tolist() == mine
    assert bulk.messages["tags"].to_pylist() == [single[p].tags for p in mine]
    if mine:
        assert bulk.status == "FOUND"


def check_places(
    opened: MessageStore, offset: int, most: int, hashes: set[int] | None, expression: str | None,
    units: list[tuple[int, int, int]], end: int, removed: int,
) -> None:  # fmt: skip
    """Where units say all, whoever asks again gets what was got first: from the queue as it was remembered."""
    at = [
        (number, place, size)
        for number, (place, size, code) in enumerate(units, offset)
        if (hashes is None or code in hashes) and removed * FILE_SIZE <= place and place + size <= end
        and place // FILE_SIZE == (place + size - 1) // FILE_SIZE
    ][:most]  # fmt: skip
    names = ["queue_offset", "phy_offset", "size"]
    answers = [
        opened.get_messages("T", 0, offset, max_msg_nums=most, tags=expression, columns=names, exact=False)
        for _ in range(2)
    ]
    for answer in answers:
        assert list(zip(*(answer.messages[name].tolist() for name in names), strict=True)) == at
        assert [answer.messages[name].dtype.str for name in names] == ["<i8", "<i8", "<i4"]
        assert answer[:4] == answers[0][:4]
        assert (answer.status == "FOUND") == bool(at)
        if len(at) == most:
            assert answer.next_begin_offset == at[-1][0] + 1


def unit_beyond(rng: random.Random, end: int) -> tuple[int, int, int]:
    """One that leads behind the log's end."""
    return end + rng.randrange(10**6), rng.randrange(1, 500), rng.choice([0, java_hash("Aa")])


def code_of(tags: str | None) -> int:
    return java_hash(tags) if tags else 0


def tags_of(expression: str | None) -> set[str] | None:
    if expression in (None, "*"):
        return None
    return {part.strip() for part in str(expression).split("||") if part.strip()}
