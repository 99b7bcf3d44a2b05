"""`mqindex info` and `mqindex dump` of consume queues, extension files, batch queues and the offsets of consumers."""

from __future__ import annotations

import csv
import io
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import MessageStore
from tests.cli.conftest import Shell, Store, process
from tests.support.golden import case


@pytest.fixture
def ext(tmp_path: Path) -> Store:
    chosen = case("ipv6-batch-ext-493")
    return Store(chosen, chosen.unpack(tmp_path))


@pytest.fixture
def batches(basic: Store) -> Path:
    """A batch queue of 9 batches of 4 messages, in two files of 6 units."""
    directory = basic.root / "batchconsumequeue" / "Batches" / "3"
    directory.mkdir(parents=True)
    units = [struct.pack(">qiqqqhii", 1000 * i, 900, 7, 1_700_000_000_000 + i, 4 * i, 4, -1, 0) for i in range(9)]
    for number in range(2):
        data = b"".join(units[6 * number : 6 * number + 6])
        (directory / f"{number * 276:020d}").write_bytes(data.ljust(276, b"\0"))
    return directory


def queue(store: Store, topic: str, queue_id: int) -> dict[str, Any]:
    said = store.case.truth["consumeQueues"]
    return next(one for one in said if (one["topic"], one["queueId"]) == (topic, queue_id))


def rows(said: dict[str, Any]) -> list[tuple[int, ...]]:
    """queue_offset, phy_offset, size and tags code of each unit, as the broker told them."""
    return [(number, *unit[:2], unit[2 if len(unit) == 3 else 3]) for number, unit in enumerate(said["units"], 0)]


def test_info_of_a_queue(shell: Shell, basic: Store) -> None:
    said = queue(basic, "BBTopic", 0)
    path = basic.root / "consumequeue" / "BBTopic" / "0"
    (info,) = shell("info", path, "--json").json
    assert (info["kind"], info["topic"], info["queue_id"]) == ("consumequeue", "BBTopic", 0)
    assert (info["min_offset_in_queue"], info["max_offset_in_queue"]) == (said["min"], said["max"])
    assert info["max_phy_offset"] == sum(said["units"][-1][:2])
    assert [file["start"] for file in info["files"]] == [0, 1000]
    done = shell("info", path)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == f"{path}: a consume queue"


def test_a_directory_that_no_broker_opens_is_not_told_as_a_queue_of_its_number(shell: Shell, basic: Store) -> None:
    """RocketMQ `DefaultMessageStore.loadConsumeQueue` opens `<topic>/7` for it."""
    queue = next(path for path in (basic.root / "consumequeue").rglob("0") if path.is_dir())
    shutil.copytree(queue, queue.parent / "07")
    done = shell("info", queue.parent / "07", "--json")
    assert (done.status, '"queue_id"' in done.out) == (0, False)


def test_info_of_one_file_of_a_queue(shell: Shell, basic: Store) -> None:
    path = basic.root / "consumequeue" / "BBTopic" / "0" / f"{1000:020d}"
    (info,) = shell("info", path, "--json").json
    assert (info["kind"], info["start"], info["units"]) == ("consumequeue-file", 1000, 1)


@pytest.mark.parametrize("below", [".", "BBTopic"])
def test_info_of_all_queues_or_those_of_a_topic(shell: Shell, basic: Store, below: str) -> None:
    (info,) = shell("info", basic.root / "consumequeue" / below, "--json").json
    said = [one for one in basic.case.truth["consumeQueues"] if one["units"] and below in (".", one["topic"])]
    found = [(one["topic"], one["queue_id"], one["min_offset_in_queue"], one["max_offset_in_queue"])
             for one in info["queues"]]  # fmt: skip
    assert found == sorted((one["topic"], one["queueId"], one["min"], one["max"]) for one in said)
    assert info["units"] == sum(len(one["units"]) for one in said)


def test_a_queue_somewhere_else_is_known_by_its_content(shell: Shell, basic: Store, tmp_path: Path) -> None:
    shutil.copytree(basic.root / "consumequeue" / "BBTopic" / "0", tmp_path / "copy")
    (info,) = shell("info", tmp_path / "copy", "--json").json
    assert (info["kind"], info["units"]) == ("consumequeue", 51)
    assert "topic" not in info


def test_info_of_extension_files(shell: Shell, ext: Store) -> None:
    path = ext.root / "consumequeue_ext" / "NetTopic" / "0"
    (info,) = shell("info", path, "--json").json
    assert (info["kind"], info["units"]) == ("consumequeue-ext", len(queue(ext, "NetTopic", 0)["units"]))
    files = [shell("info", file, "--json").json[0] for file in sorted(path.iterdir())]
    assert {file["kind"] for file in files} == {"consumequeue-ext-file"}
    assert sum(file["units"] for file in files) == info["units"]


def test_info_of_batch_queues(shell: Shell, basic: Store, batches: Path) -> None:
    (info,) = shell("info", batches, "--json").json
    assert (info["kind"], info["units"], info["max_offset_in_queue"]) == ("batchconsumequeue", 9, 36)
    (store,) = shell("info", basic.root, "--json").json
    (one,) = store["batchconsumequeue"]["queues"]
    assert (one["topic"], one["queue_id"], one["units"], one["max_phy_offset"]) == ("Batches", 3, 9, 8900)
    (file,) = shell("info", batches / f"{276:020d}", "--json").json
    assert (file["kind"], file["units"]) == ("batchconsumequeue-file", 3)


def test_info_of_a_store_tells_the_lag_of_each_group(shell: Shell, basic: Store) -> None:
    offsets = basic.root / "config" / "consumerOffset.json"
    offsets.write_text('{\n\t"offsetTable":{\n\t\t"AaTopic@GroupA":{0:12,1:39\n\t\t},\n\t\t"Gone@GroupA":{0:5}\n\t}\n}')
    (info,) = shell("info", basic.root, "--json").json
    told = info["consumer_offsets"]["offsets"]
    end = queue(basic, "AaTopic", 0)["max"]
    assert told[0] == {
        "group": "GroupA", "topic": "AaTopic", "queue_id": 0, "offset": 12, "max_offset_in_queue": end, "lag": end - 12,
    }  # fmt: skip
    assert [one["lag"] for one in told] == [end - 12, queue(basic, "AaTopic", 1)["max"] - 39, None]
    assert shell("info", offsets, "--json").json[0]["offsets"] == told
    line = next(line.split() for line in shell("info", basic.root, "--all").lines if line.startswith("GroupA"))
    assert line == ["GroupA", "AaTopic", "0", "12", str(end), str(end - 12)]


def test_the_lag_of_who_consumes_batch_queues_is_to_their_own_end(shell: Shell, basic: Store, batches: Path) -> None:
    """As many messages as the broker counts, not batches; the queues were not found, and 0 was taken for the end."""
    offsets = basic.root / "config" / "consumerOffset.json"
    offsets.write_text('{"offsetTable":{"Batches@g":{"3":30},"../Batches@g":{"3":30}}}')
    for path in (basic.root, offsets):
        (info,) = shell("info", path, "--json").json
        told = (info["consumer_offsets"] if path == basic.root else info)["offsets"]
        assert [(one["topic"], one["max_offset_in_queue"], one["lag"]) for one in told] == [
            ("../Batches", None, None), ("Batches", 36, 6),
        ]  # fmt: skip
    with MessageStore.open(basic.root) as store:
        assert store.consumer_offsets.lag["Batches@g"] == {3: 6}


def test_offsets_that_cannot_be_read_are_told_and_the_rest_is_shown(shell: Shell, basic: Store) -> None:
    offsets = basic.root / "config" / "consumerOffset.json"
    offsets.write_text("{not json")
    done = shell("info", basic.root)
    assert done.status == 2
    assert str(offsets) in done.err
    assert "100.0 %" in done.out


@pytest.mark.parametrize("form", ["csv", "json", "table", "arrow"])
def test_dump_of_a_queue(basic: Store, form: str) -> None:
    expected = rows(queue(basic, "BBTopic", 0))
    done = process("dump", basic.root / "consumequeue" / "BBTopic" / "0", "--format", form)
    assert (done.returncode, done.stderr) == (0, b"")
    if form == "arrow":
        pa = pytest.importorskip("pyarrow")
        found = [tuple(row.values()) for row in pa.ipc.open_stream(done.stdout).read_all().to_pylist()]
    elif form == "csv":
        titles, *lines = csv.reader(io.StringIO(done.stdout.decode()))
        assert titles == ["queue_offset", "phy_offset", "size", "tags_code"]
        found = [tuple(map(int, line)) for line in lines]
    elif form == "json":
        found = [tuple(list(one.values())[1:]) for one in map(__import__("json").loads, done.stdout.splitlines())]
    else:
        found = [tuple(map(int, line.split())) for line in done.stdout.decode().splitlines()[1:]]
    assert found == expected


def test_dump_follows_the_addresses_of_extension_files(shell: Shell, ext: Store) -> None:
    done = shell("dump", ext.root / "consumequeue" / "NetTopic" / "0", "--format", "csv")
    assert [tuple(map(int, line.split(","))) for line in done.lines[1:]] == rows(queue(ext, "NetTopic", 0))
    units = queue(ext, "NetTopic", 0)["units"]
    path = ext.root / "consumequeue_ext" / "NetTopic" / "0"
    whole = shell("dump", path, "--format", "csv").lines
    assert whole[0] == "address,tags_code,store_timestamp,bitmap_size"
    assert [tuple(map(int, line.split(",")))[:3] for line in whole[1:]] == [tuple(unit[2:5]) for unit in units]
    parts = [shell("dump", file, "--format", "csv").lines[1:] for file in sorted(path.iterdir())]
    assert len(parts) > 1
    assert [line for part in parts for line in part] == whole[1:]


def test_dump_of_all_queues_and_of_one_file(shell: Shell, basic: Store) -> None:
    done = shell("dump", basic.root / "consumequeue", "--format", "csv")
    said = sorted(basic.case.truth["consumeQueues"], key=lambda one: (one["topic"], one["queueId"]))
    expected = [f"{one['topic']},{one['queueId']},{','.join(map(str, row))}" for one in said for row in rows(one)]
    assert done.lines == ["topic,queue_id,queue_offset,phy_offset,size,tags_code", *expected]
    file = basic.root / "consumequeue" / "BBTopic" / "0" / f"{1000:020d}"
    (row,) = shell("dump", file, "--format", "csv").lines[1:]
    assert tuple(map(int, row.split(","))) == rows(queue(basic, "BBTopic", 0))[50]


def test_dump_of_batch_queues(shell: Shell, basic: Store, batches: Path) -> None:
    whole = shell("dump", batches, "--json").json
    assert [(one["msg_base_offset"], one["batch_size"]) for one in whole] == [(4 * i, 4) for i in range(9)]
    files = [shell("dump", file, "--json").json for file in sorted(batches.iterdir())]
    assert [len(file) for file in files] == [6, 3]
    assert files[0] + files[1] == whole
    everything = shell("dump", basic.root / "batchconsumequeue", "--json").json
    assert {(one["topic"], one["queue_id"]) for one in everything} == {("Batches", 3)}


@pytest.mark.parametrize("form", ["csv", "table", "json", "arrow"])
def test_an_empty_queue_still_has_its_columns(basic: Store, form: str) -> None:
    for file in (basic.root / "consumequeue" / "BBTopic" / "0").iterdir():
        file.write_bytes(bytes(1000))
    done = process("dump", basic.root / "consumequeue" / "BBTopic" / "0", "--format", form)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"tags_code" in done.stdout) == (form != "json")


def test_what_is_no_queue_is_told_what_was_expected(shell: Shell, basic: Store) -> None:
    gone = basic.root / "consumequeue" / "NoTopic" / "0"
    done = shell("dump", gone)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"mqindex: no such file or directory: {gone}\n"
    for command in ("verify", "query"):
        arguments = ["--topic", "T", "k"] if command == "query" else []
        done = shell(command, basic.root / "consumequeue" / "BBTopic" / "0", *arguments)
        assert done.status == 2
        assert "is a consume queue: expected a store's root directory" in done.err
