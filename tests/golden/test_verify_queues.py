"""`verify` finds what is wrong with the consume queues and the side files of stores that a broker left."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.report import Finding, Report
from mqindex.rocketmq import verify
from mqindex.rocketmq.checks.queues.queue_diagnosis import diagnose_queues
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import survey
from mqindex.rocketmq.settings import MESSAGE_DELAY_LEVEL
from tests.support.golden import STORE_CASES, StoreCase

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
UNIT = struct.Struct(">qiq")
each_store = pytest.mark.parametrize("name", STORE_CASES)


@pytest.fixture
def basic(golden_store: GoldenStore) -> Path:
    return golden_store("basic-493")[1]


def found(report: Report, kind: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind == kind]


def only(root: Path, severity: str, kind: str, config: Mapping[str, str] | None = None) -> Finding:
    """The one finding of a store; verify says so quickly and deeply."""
    quick, deep = verify(root, config=config), verify(root, config=config, deep=True)
    assert quick.findings == deep.findings
    assert [(finding.severity, finding.kind) for finding in deep.findings] == [(severity, kind)], deep.findings
    assert deep.ok == (severity != "error")
    return deep.findings[0]


def queue(root: Path, topic: str = "AaTopic", queue_id: int = 0) -> Path:
    """The first file of a queue."""
    return min((root / "consumequeue" / topic / str(queue_id)).iterdir())


def units(path: Path) -> list[tuple[int, int, int]]:
    return list(UNIT.iter_unpack(path.read_bytes()))


def used(path: Path) -> int:
    return sum(size > 0 for _, size, _ in units(path))


def change(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@each_store
@pytest.mark.parametrize("split_size", [4096, 8192, 1 << 27])
def test_every_unit_of_a_broker_is_right_however_the_log_is_cut(
    name: str, split_size: int, golden_store: GoldenStore
) -> None:
    chosen, root = golden_store(name)
    seen = diagnose_queues(LocalEngine(1), survey(store_options(root)), deep=True, split_size=split_size)
    assert seen.findings == ()
    assert (seen.missing, seen.bad) == ((), ())
    assert seen.messages == len(chosen.truth["messages"])
    told = {(one["topic"], one["queueId"]): (one["min"], one["max"]) for one in chosen.truth["consumeQueues"]}
    assert {(one.topic, one.queue_id): (one.min_offset, one.max_offset) for one in seen.queues} == {
        key: value for key, value in told.items() if value[1]
    }


@pytest.mark.parametrize(("at", "name"), [(7, "phy_offset"), (11, "size"), (19, "tags_code")])
def test_unit_with_another_value_is_wrong(at: int, name: str, basic: Path) -> None:
    path = queue(basic)
    change(path, 20 * 3 + at, bytes([path.read_bytes()[20 * 3 + at] ^ 1]))
    finding = only(basic, "error", "wrong-unit")
    assert (finding.path, finding.at, finding.field) == (str(path), 60, f"{name} of unit 3")
    assert finding.expected != finding.got == units(path)[3][["phy_offset", "size", "tags_code"].index(name)]


def test_unit_of_another_queue_is_wrong(basic: Path) -> None:
    path = queue(basic)
    change(path, 0, queue(basic, "BBTopic").read_bytes()[:20])
    assert only(basic, "error", "wrong-unit").field == "phy_offset of unit 0"


@pytest.mark.parametrize("blank", [bytes(20), UNIT.pack(0, 2**31 - 1, 0)], ids=["zeros", "blank"])
def test_place_without_its_unit_is_missed(blank: bytes, basic: Path) -> None:
    path = queue(basic)
    change(path, 40, blank)
    assert "1 unit from queue offset 2" in str(only(basic, "error", "missing-units"))


def test_queue_without_its_last_units_is_missed(basic: Path) -> None:
    path = queue(basic)
    change(path, 20 * (used(path) - 2), bytes(40))
    assert "2 units" in str(only(basic, "error", "missing-units"))


def test_units_behind_the_log_s_end_make_a_queue_too_long(basic: Path) -> None:
    path = queue(basic)
    change(path, 20 * used(path), UNIT.pack(1 << 40, 100, 0) * 3)
    finding = only(basic, "error", "queue-beyond-log")
    assert finding.got == 1 << 40
    assert "3 units" in str(finding)


def test_unit_that_leads_to_no_message_of_the_queue_is_found(basic: Path) -> None:
    path = queue(basic)
    change(path, 20 * used(path), UNIT.pack(units(path)[0][0] + 1, 100, 0))
    assert only(basic, "error", "foreign-unit").at == 20 * (used(path) - 1)


def test_old_bytes_behind_a_queue_s_end_are_told(basic: Path) -> None:
    path = queue(basic)
    change(path, 20 * (used(path) + 1), UNIT.pack(1 << 40, 100, 0))
    assert only(basic, "info", "stale-queue-bytes").path == str(path)


def test_queue_of_which_nothing_is_left_is_missed(basic: Path) -> None:
    shutil.rmtree(basic / "consumequeue" / "AaTopic" / "0")
    report = verify(basic)
    assert [finding.kind for finding in report.findings] == ["queue-missing"]
    assert any("AaTopic/0" in action for action in report.actions)


def test_store_without_any_queue_is_told_in_one_line(basic: Path) -> None:
    shutil.rmtree(basic / "consumequeue")
    finding, unknown = verify(basic).findings
    assert (finding.kind, finding.path) == ("queue-missing", str(basic / "consumequeue"))
    assert unknown.kind == "queue-file-size-unknown"
    assert "14 queues, 548 units" in str(finding)


def test_file_between_two_others_is_missed(golden_store: GoldenStore) -> None:
    _, root = golden_store("rolls-493")
    files = sorted((root / "consumequeue" / "RollTopic" / "0").iterdir())
    files[1].unlink()
    report = verify(root)
    told = {finding.kind for finding in report.findings}
    assert told == {"queue-file-missing", "missing-units", "file-length-unknown"}


def test_file_of_another_length_is_an_error_since_no_broker_starts(basic: Path) -> None:
    path = queue(basic)
    path.write_bytes(path.read_bytes() + bytes(20))
    assert "refuses to start" in str(only(basic, "error", "queue-size"))


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_stranger_among_a_queue_s_files_is_an_error_for_brokers_that_refuse_to_start(
    kind: str, golden_store: GoldenStore
) -> None:
    for name, severity in (("basic-493", "error"), ("basic-550", "error" if kind == "file" else "warning")):
        root = golden_store(name)[1]
        stranger = queue(root).parent / "notes"
        _ = stranger.write_bytes(b"mine") if kind == "file" else stranger.mkdir()
        report = verify(root, broker_version=name[-3] + "." + name[-2] + "." + name[-1])
        assert [(one.severity, one.kind) for one in report.findings] == [(severity, "stray-queue-file")]


def test_strangers_above_the_queues_are_passed_over(basic: Path) -> None:
    (basic / "consumequeue" / "notes").write_bytes(b"mine")
    (basic / "consumequeue" / "AaTopic" / "notes").mkdir()
    report = verify(basic)
    assert report.ok
    assert [(one.severity, one.kind) for one in report.findings] == [("warning", "stray-file")] * 2


def test_units_of_messages_that_expired_are_told(golden_store: GoldenStore) -> None:
    _, root = golden_store("exactfit-493")
    first = min((root / "commitlog").iterdir())
    first.unlink()
    report = verify(root, deep=True)
    assert report.ok, report.findings
    assert {finding.kind for finding in report.findings} == {"queue-units-expired", "index-entries-expired"}
    assert sum(finding.got for finding in found(report, "queue-units-expired")) > 0


def test_queue_whose_messages_all_expired_has_a_stale_min_offset(golden_store: GoldenStore) -> None:
    _, root = golden_store("killed-lost-493")
    for path in (root / "consumequeue" / "LostTopic" / "1").iterdir():
        path.unlink()
    old = root / "consumequeue" / "OldTopic" / "0"
    old.mkdir(parents=True)
    (old / f"{0:020d}").write_bytes((UNIT.pack(100, 100, 0) * 5).ljust(1000, b"\0"))
    min((root / "commitlog").iterdir()).unlink()
    report = verify(root)
    assert len(found(report, "queue-min-offset-stale")) == 1
    assert found(report, "queue-min-offset-stale")[0].expected == "min offset 5"
    assert found(report, "missing-units")


def test_hole_in_the_log_is_an_error_but_what_the_queues_say_of_it_is_not(golden_store: GoldenStore) -> None:
    _, root = golden_store("exactfit-493")
    sorted((root / "commitlog").iterdir())[3].unlink()
    report = verify(root)
    assert not report.ok
    assert found(report, "log-file-missing")
    assert found(report, "queue-units-of-damaged-log")
    assert not found(report, "foreign-unit") + found(report, "wrong-unit") + found(report, "missing-units")


def test_bad_body_in_an_earlier_file_is_found_by_a_deep_look_alone(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("exactfit-493")
    message = next(one for one in chosen.truth["messages"][5:] if one["bodyLen"] > 10)
    change(root / "commitlog" / f"{0:020d}", message["phyOffset"] + 90, b"\xff\xfe")
    assert verify(root).ok
    report = verify(root, deep=True)
    assert [finding.kind for finding in report.findings] == ["log-bad-crc"]
    assert report.messages == len(chosen.truth["messages"])


def test_tag_hash_in_place_of_a_deliver_time_is_a_warning(golden_store: GoldenStore) -> None:
    """What recovery of 4.9.2 to 4.9.8 writes, because it runs before the delay levels are known."""
    _, root = golden_store("tx-delay-lmq-493")
    path, known = queue(root, "SCHEDULE_TOPIC_XXXX", 1), {MESSAGE_DELAY_LEVEL.name: MESSAGE_DELAY_LEVEL.default}
    change(path, 12, struct.pack(">q", -1685804066))
    assert "4.9.2 to 4.9.8" in str(only(root, "warning", "no-deliver-time", config=known))
    change(path, 12, struct.pack(">q", 1_600_000_000_000))
    assert only(root, "error", "wrong-unit", config=known).field == "tags_code of unit 0"


def test_extension_unit_that_disagrees_is_found(golden_store: GoldenStore) -> None:
    _, root = golden_store("ipv6-batch-ext-493")
    path = min((root / "consumequeue_ext" / "NetTopic" / "0").iterdir())
    change(path, 3, b"\x12\x34")
    assert "1 unit whose" in str(only(root, "error", "wrong-ext-unit"))
    shutil.rmtree(root / "consumequeue_ext")
    report = verify(root, config={"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 1000})
    assert {finding.kind for finding in report.findings} == {"wrong-ext-unit"}


# ---- side files


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (struct.pack(">3q", -1, 0, 0).ljust(4096, b"\0"), [("error", "checkpoint-garbage")]),
        (b"\xff" * 4096, [("error", "checkpoint-garbage")] * 3),
        (b"\x7f" * 4096, [("error", "checkpoint-garbage")] * 3 + [("warning", "checkpoint-ahead")] * 2),
        (struct.pack(">3q", 1_900_000_000_000, 0, 0).ljust(4096, b"\0"), [("warning", "checkpoint-ahead")]),
        (b"", [("warning", "checkpoint-size")]),
        (bytes(30), [("warning", "checkpoint-size")]),
        (bytes(4096), []),
    ],
)
def test_checkpoint_that_no_broker_of_this_store_wrote(
    data: bytes, expected: list[tuple[str, str]], basic: Path
) -> None:
    (basic / "checkpoint").write_bytes(data)
    report = verify(basic)
    assert [(one.severity, one.kind) for one in report.findings] == expected


def test_checkpoint_that_is_a_directory(basic: Path) -> None:
    (basic / "checkpoint").unlink()
    (basic / "checkpoint").mkdir()
    report = verify(basic)
    assert [(one.severity, one.kind) for one in report.findings] == [("error", "checkpoint-unreadable")]


def test_checkpoint_says_where_a_broker_begins_after_an_unclean_exit(golden_store: GoldenStore) -> None:
    _, root = golden_store("killed-493")
    assert [finding.got for finding in found(verify(root), "checkpoint-behind")] == [0]
    (root / "checkpoint").unlink()
    assert len(found(verify(root), "checkpoint-missing")) == 1


def test_offsets_of_consumers_are_in_the_range_of_their_queues(basic: Path) -> None:
    last = used(queue(basic))
    table = f'{{"offsetTable":{{"AaTopic@g":{{0:{last},1:0}},"AaTopic@h":{{0:{last + 1}}},"Gone@g":{{0:7}}}}}}'
    (basic / "config" / "consumerOffset.json").write_text(table)
    (basic / "config" / "topics.json").write_text("{}")
    report = verify(basic)
    assert [(one.severity, one.kind, one.got) for one in report.findings] == [
        ("warning", "consumer-offset-beyond-queue", last + 1),
        ("info", "consumer-offset-without-queue", 7),
    ]


def test_offsets_of_delay_levels_are_in_the_range_of_their_queues(golden_store: GoldenStore) -> None:
    _, root = golden_store("tx-delay-lmq-493")
    (root / "config" / "delayOffset.json").write_text('{"offsetTable":{1:99}}')
    assert only(root, "warning", "delay-offset-beyond-queue").field == "level 1"


def test_side_file_that_is_no_json_needs_its_backup(basic: Path) -> None:
    path = basic / "config" / "consumerOffset.json"
    (basic / "config" / "topics.json").write_text("{}")
    path.write_bytes(b"\0\0\0\0")
    assert not verify(basic).ok
    Path(f"{path}.bak").write_text('{"offsetTable":{}}')
    assert only(basic, "warning", "side-file-invalid").path == str(path)
    path.write_text('{"offsetTable":{"AaTopic@g":{0:')
    assert only(basic, "warning", "side-file-invalid").path == str(path)
    Path(f"{path}.bak").write_text("[")
    assert only(basic, "error", "side-file-invalid").path == str(path)
    path.write_text('{"offsetTable":7}')
    Path(f"{path}.bak").unlink()
    assert only(basic, "error", "side-file-invalid").path == str(path)
