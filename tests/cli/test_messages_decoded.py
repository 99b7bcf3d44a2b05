"""`mqindex messages --decode`: the topics that Kafka's brokers keep for themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Shell, Store
from tests.support.kafka_writer import KafkaRecord, PartitionWriter
from tests.unit.test_kafka_internal import COMMITS, KEY, METADATA, TRANSACTIONS

COMMIT_TIME = 1_700_000_000_000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zone maps of tests are not the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    home = tmp_path / "logs"
    key, value = bytes.fromhex("0001" + KEY), bytes.fromhex(next(iter(COMMITS)))
    written = {
        "__consumer_offsets-3": [KafkaRecord(value, key), KafkaRecord(b"", b"\0\2\0\3app"), KafkaRecord(None, key)],
        "__transaction_state-0": [KafkaRecord(bytes.fromhex(min(TRANSACTIONS)), bytes.fromhex("00000003746964"))],
        "__cluster_metadata-0": [KafkaRecord(bytes.fromhex(each)) for each in METADATA],
        "orders-0": [KafkaRecord()],
    }
    for name, records in written.items():
        writer = PartitionWriter(home / name)
        writer.append(records)
        writer.close()
    (home / ".lock").touch()
    return home


def test_a_groups_commits(shell: Shell, log_dir: Path) -> None:
    for asked in (
        [log_dir, "--topic", "__consumer_offsets"],
        [log_dir, "--partition", "__consumer_offsets-3"],
        [log_dir / "__consumer_offsets-3"],
        [log_dir / "__consumer_offsets-3" / f"{0:020d}.log"],
    ):
        first, second, third = shell("messages", *asked, "--decode", "--json").json
        assert (first["kind"], first["group"], first["topic"], first["partition"]) == ("commit", "app", "orders", 2)
        assert (first["offset"], first["record_offset"], first["commit_time"]) == (1234567890123, 0, COMMIT_TIME)
        assert (second["kind"], second["group"], third["kind"]) == ("group", "app", "deleted")


def test_it_goes_with_columns_sql_and_a_table(shell: Shell, log_dir: Path) -> None:
    pytest.importorskip("duckdb")
    asked = ["messages", log_dir, "--topic", "__consumer_offsets", "--decode"]
    done = shell(*asked, "--columns", "group,offset", "--where", "kind = 'commit'", "--format", "csv")
    assert done.out == "group,offset\napp,1234567890123\n"
    assert shell(*asked, "--columns", "kind", "--limit", "1", "--format", "csv").out == "kind\ncommit\n"
    done = shell(*asked)
    assert done.status == 0 and len(done.lines) == 4 and done.lines[0].split()[:3] == [
        "record_partition", "record_offset", "record_timestamp",
    ]  # fmt: skip
    refused = shell(*asked, "--columns", "value")
    assert refused.status == 2 and "expected some of record_partition" in refused.err and "'value'" in refused.err


def test_transactions_and_metadata(shell: Shell, log_dir: Path) -> None:
    (row,) = shell("messages", log_dir / "__transaction_state-0", "--decode", "--json").json
    assert (row["transactional_id"], row["state"]) == ("tid", "PrepareAbort")
    rows = shell("messages", log_dir / "__cluster_metadata-0", "--decode", "--json").json
    assert [row["kind"] for row in rows].count("Config") == 2


def test_of_other_topics_it_is_refused_in_one_sentence(shell: Shell, log_dir: Path, lost: Store) -> None:
    for asked, got in (
        ([log_dir, "--topic", "orders"], "orders"),
        ([log_dir], "logs"),
        ([log_dir / "orders-0"], "orders"),
        ([log_dir, "--partition", "orders-0", "--partition", "__consumer_offsets-3"], "__consumer_offsets, orders"),
    ):
        done = shell("messages", *asked, "--decode")
        assert done.status == 2 and done.out == "" and "Traceback" not in done.err
        assert "expected --topic __consumer_offsets or" in done.err and f"got {got}; control markers are" in done.err
    done = shell("messages", lost.root, "--decode")
    assert done.status == 2 and "--decode is for topics that Kafka's brokers keep for themselves" in done.err
