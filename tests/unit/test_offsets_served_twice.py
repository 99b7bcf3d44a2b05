"""A broker that had lost a queue's end gave queue offsets again: messages that consumers get leave only when asked."""

from __future__ import annotations

import json
import os
import random
import struct
import sys
from pathlib import Path

import pytest

from mqindex.errors import FileStateError
from mqindex.rocketmq import CommitLog, rebuild, repair, verify
from mqindex.rocketmq.checks.queues import served as served_messages
from mqindex.rocketmq.checks.queues import unit_check
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.queue.unit_places import joined, shared
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.offsets_given_again import CONFIG, phy_offsets, put_units, store_with_offsets_given_again

KIND = "offsets-served-twice"


def named(served: list[int], *places: int, keys: dict[int, str]) -> str:
    """As text the first ten, and how many more there are."""
    some = [f"queue offset {place}: phy offset {served[place]}, keys {keys[served[place]]}" for place in places[:10]]
    return "; ".join(
        [*some, *([f"and {len(places) - 10} more (--json names {len(places)})"] if len(places) > 10 else [])]
    )


def keys_of(store: Path) -> dict[int, str]:
    with CommitLog.open(store / "commitlog") as log:
        return {at: log.get_message(at).keys or "" for batch in log.scan() for at in batch["phy_offset"].tolist()}


def test_messages_that_consumers_get_leave_a_queue_only_when_that_is_asked_for(tmp_path: Path) -> None:
    first = store_with_offsets_given_again(tmp_path, 50, range(40, 42), CONFIG)
    served = phy_offsets(tmp_path)
    got = f"2 later messages at queue offsets 40 to 41; {named(served, 40, 41, keys=keys_of(tmp_path))}"
    for report in (verify(tmp_path, config=CONFIG), repair(tmp_path, config=CONFIG, dry_run=True)):
        assert [str(one.got) for one in report.findings if one.kind == KIND] == [got]
    with pytest.raises(FileStateError, match="replace_served=True") as refused:
        repair(tmp_path, config=CONFIG)
    assert str(refused.value.got) == got
    assert phy_offsets(tmp_path) == served
    assert repair(tmp_path, config=CONFIG, replace_served=True).ok
    assert phy_offsets(tmp_path) == first
    assert verify(tmp_path, config=CONFIG).ok


def test_where_more_differs_than_is_listed_a_repair_asks_too(tmp_path: Path) -> None:
    """30 later messages behind 200 wrong units left the queue without a word."""
    config = {**CONFIG, "mappedFileSizeConsumeQueue": 20_000}
    store_with_offsets_given_again(tmp_path, 800, range(600, 630), config)
    put_units(tmp_path, config, dict.fromkeys(range(10, 210), 7))
    served = phy_offsets(tmp_path)
    got = f"30 later messages at queue offsets 600 to 629; {named(served, *range(600, 630), keys=keys_of(tmp_path))}"
    assert [str(one.got) for one in verify(tmp_path, config=config).findings if one.kind == KIND] == [got]
    with pytest.raises(FileStateError, match="replace_served=True"):
        repair(tmp_path, config=config)
    assert phy_offsets(tmp_path) == served


def test_thousands_are_counted_over_blocks_files_and_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_check, "_HELD", 1000)
    monkeypatch.setattr(sys.modules["mqindex.rocketmq.verify"], "split_size_for", lambda _bytes: 1 << 17)
    config = {**CONFIG, "mappedFileSizeConsumeQueue": 20_000}
    store_with_offsets_given_again(tmp_path, 9000, range(4000, 8500), config)
    served = phy_offsets(tmp_path)
    some = named(served, *range(4000, 8500), keys=keys_of(tmp_path))
    got = f"4500 later messages at queue offsets 4000 to 8499; {some}"
    for report in (verify(tmp_path, config=config), repair(tmp_path, config=config, dry_run=True)):
        assert [str(one.got) for one in report.findings if one.kind == KIND] == [got]
    with pytest.raises(FileStateError, match="replace_served=True") as refused:
        repair(tmp_path, config=config)
    assert str(refused.value.got) == got
    assert phy_offsets(tmp_path) == served


def test_late_messages_that_filled_a_hole_are_not_counted(tmp_path: Path) -> None:
    """Their queue offsets were of no message before."""
    offsets = [*range(20), *range(30, 50), *range(20, 30), *range(40, 45)]
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 20)
    written = writer.write(*(LogMessage("T", queue_offset=offset, keys=f"k{at}") for at, offset in enumerate(offsets)))
    rebuild(tmp_path, tmp_path / "out", config=CONFIG)
    for part in ("index", "consumequeue"):
        (tmp_path / "out" / part).rename(tmp_path / part)
    assert KIND not in {one.kind for one in verify(tmp_path, config=CONFIG).findings}
    put_units(tmp_path, CONFIG, dict(zip(range(40, 45), written[50:], strict=True)))
    some = named(phy_offsets(tmp_path), *range(40, 45), keys=keys_of(tmp_path))
    got = f"5 later messages at queue offsets 40 to 44; {some}"
    assert [str(one.got) for one in verify(tmp_path, config=CONFIG).findings if one.kind == KIND] == [got]


@pytest.mark.parametrize("split_size", [1 << 10, 1 << 12, 1 << 20])
def test_earlier_messages_of_a_queue_that_a_broker_built_from_nothing(
    split_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4.9.3 and 5.5.1 give consumers the earlier ones then, and the first of the later ones behind them."""
    monkeypatch.setattr(sys.modules["mqindex.rocketmq.repair"], "SPLIT_SIZE", split_size)
    monkeypatch.setattr(sys.modules["mqindex.rocketmq.verify"], "split_size_for", lambda _bytes: split_size)
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 20)
    first = writer.write(*(LogMessage("T", queue_offset=at, keys=f"first{at}") for at in range(50)))
    rebuild(tmp_path, tmp_path / "early", config=CONFIG)
    later = writer.write(*(LogMessage("T", queue_offset=at, keys=f"later{at}") for at in range(12)))
    rebuild(tmp_path, tmp_path / "out", config=CONFIG)
    (tmp_path / "out/index").rename(tmp_path / "index")
    (tmp_path / "early/consumequeue").rename(tmp_path / "consumequeue")
    with open(tmp_path / f"consumequeue/T/0/{0:020d}", "r+b") as file:
        file.seek(50 * 20)
        file.write(struct.pack(">qiq", later[0], later[1] - later[0], 0))
    assert phy_offsets(tmp_path) == [*first, later[0]]
    got = f"50 earlier messages among queue offsets 0 to 49; {named(first, *range(50), keys=keys_of(tmp_path))}"
    for report in (verify(tmp_path, config=CONFIG), repair(tmp_path, config=CONFIG, dry_run=True)):
        assert [str(one.got) for one in report.findings if one.kind == KIND] == [got]
    with pytest.raises(FileStateError, match="replace_served=True") as refused:
        repair(tmp_path, config=CONFIG)
    assert str(refused.value.got) == got
    assert phy_offsets(tmp_path) == [*first, later[0]]
    assert repair(tmp_path, config=CONFIG, replace_served=True).ok
    assert phy_offsets(tmp_path) == later
    assert verify(tmp_path, config=CONFIG).ok


def test_all_of_them_are_in_the_json_of_a_report(tmp_path: Path) -> None:
    """Five were named, by phy offsets, and of earlier messages none."""
    store_with_offsets_given_again(tmp_path, 50, range(20, 42), CONFIG)
    served, keys = phy_offsets(tmp_path), keys_of(tmp_path)
    (found,) = (one for one in verify(tmp_path, config=CONFIG).to_dict()["findings"] if one["kind"] == KIND)
    got = json.loads(json.dumps(found["got"]))
    assert (got["said"], got["count"]) == ("22 later messages at queue offsets 20 to 41", 22)
    assert [(one["queue_offset"], one["phy_offset"], one["keys"]) for one in got["messages"]] == [
        (place, served[place], keys[served[place]]) for place in range(20, 42)
    ]
    assert {int(one["msg_id"][-16:], 16) for one in got["messages"]} == set(served[20:42])


def test_more_than_a_report_names_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_messages, "MOST", 7)
    store_with_offsets_given_again(tmp_path, 50, range(20, 42), CONFIG)
    (found,) = (one.got for one in verify(tmp_path, config=CONFIG).findings if one.kind == KIND)
    assert (found.count, len(found.messages)) == (22, 7)
    assert str(found).endswith("; and 15 more (--json names 7)")


def test_a_message_that_is_gone_meanwhile_is_not_named(tmp_path: Path) -> None:
    """A broker deleted its log file, or its record was damaged; long keys are cut."""
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 20)
    written = writer.write(LogMessage("T", queue_offset=0, keys="k" * 900), LogMessage("T", queue_offset=1))
    rebuild(tmp_path, tmp_path / "out", config=CONFIG)
    (tmp_path / "out/consumequeue").rename(tmp_path / "consumequeue")
    asked = served_messages.Served(("T", 0), True, ((0, 2),), 0, 1 << 20)
    options = store_options(tmp_path, config=CONFIG)
    first, second = served_messages.name_served(options, asked)
    assert (first.keys, str(second)) == ("k" * 100, f"queue offset 1: phy offset {written[1]}, id {second.msg_id}")
    with open(tmp_path / "commitlog" / f"{0:020d}", "r+b") as file:
        file.seek(written[1] + 4)
        file.write(bytes(4))
    assert served_messages.name_served(options, asked) == (first,)
    assert served_messages.name_served(options, asked._replace(low=1)) == ()


@pytest.mark.parametrize("left", [0, 7])
def test_a_queue_without_earlier_messages_is_repaired_unasked(left: int, tmp_path: Path) -> None:
    """Its topic was deleted and created again: consumers get none of the earlier ones."""
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 20)
    offsets = [*range(50), *range(12)]
    written = writer.write(*(LogMessage("T", queue_offset=at, keys=f"k{n}") for n, at in enumerate(offsets)))
    rebuild(tmp_path, tmp_path / "out", config=CONFIG)
    for part in ("index", "consumequeue"):
        (tmp_path / "out" / part).rename(tmp_path / part)
    path = tmp_path / f"consumequeue/T/0/{0:020d}"
    os.truncate(path, left * 20)
    os.truncate(path, CONFIG["mappedFileSizeConsumeQueue"])
    assert repair(tmp_path, config=CONFIG).ok
    assert phy_offsets(tmp_path) == written[50:]


def test_what_both_ranges_have_is_what_both_sets_have() -> None:
    source = random.Random(7)
    for _ in range(300):
        one, other = ({source.randrange(40) for _ in range(source.randrange(30))} for _ in range(2))
        found = shared(*(joined([(at, at + 1) for at in each]) for each in (one, other)))
        assert {at for start, stop in found for at in range(start, stop)} == one & other
