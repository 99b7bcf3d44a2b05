"""Tables of paths: which there are, what reaches their readers, and what is left when a query is given up."""

from __future__ import annotations

import datetime as dt
import functools
import gc
import operator
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mqindex
from mqindex import kafka, rocketmq
from mqindex.columns.columns import Columns
from mqindex.errors import FileStateError
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import KafkaRecord, PartitionWriter
from tests.unit.test_kafka_internal import COMMITS, KEY, METADATA, TRANSACTIONS

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pc = pytest.importorskip("pyarrow.compute")
ds = pytest.importorskip("pyarrow.dataset")

OF_STORE = ["messages", "units", "index_entries", "consumer_offsets", "files"]
OF_PARTITION = ["records", "batches", "offset_index", "time_index", "transactions", "producers", "segments", "markers"]
UTC = dt.UTC


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return case("basic-493").unpack(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PartitionCase("410-txn").closed(tmp_path_factory.mktemp("partition"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each scan that has columns; the bounds are what a table asks for beside them."""
    calls: list[dict[str, Any]] = []
    for broker in (rocketmq, kafka):
        scan = broker.scan

        def spy(path: Any, *, scan: Any = scan, **given: Any) -> Any:
            if "columns" in given:
                calls.append(given)
            return scan(path, **given)

        monkeypatch.setattr(broker, "scan", spy)
    return calls


# ---- which tables there are


def test_the_tables_of_each_kind_of_path(store: Path, partition: Path) -> None:
    queue = next((store / "consumequeue").glob("*/0"))
    for path, names in {
        store: OF_STORE,
        store / "commitlog": ["messages"],
        next((store / "commitlog").iterdir()): ["messages"],
        store / "consumequeue": ["units"],
        queue: ["units"],
        store / "index": ["index_entries"],
        next((store / "index").iterdir()): ["index_entries"],
        partition: OF_PARTITION,
        partition.parent: [*OF_PARTITION, "commits", "transaction_states", "metadata"],
        partition / "00000000000000000000.log": ["records", "batches", "markers"],
        partition / "00000000000000000000.index": ["offset_index"],
        partition / "00000000000000000000.timeindex": ["time_index"],
        next(partition.glob("*.txnindex")): ["transactions"],
        next(partition.glob("*.snapshot")): ["producers"],
    }.items():
        assert mqindex.tables(path) == names, path
        for name in names:
            rows = mqindex.dataset(path, name).to_table()
            assert len(rows) == mqindex.dataset(str(path), name).count_rows(), (path, name)
        assert mqindex.dataset(path).table == names[0]


def test_a_part_has_the_rows_of_the_whole(store: Path, partition: Path) -> None:
    for whole, below, table in (
        (store, (store / "consumequeue").glob("*/*"), "units"),
        (store, (store / "index").iterdir(), "index_entries"),
        (store, (store / "commitlog").iterdir(), "messages"),
        (partition, partition.glob("*.log"), "records"),
        (partition, partition.glob("*.log"), "batches"),
        (partition, partition.glob("*.index"), "offset_index"),
        (partition, partition.glob("*.timeindex"), "time_index"),
        (partition, partition.glob("*.txnindex"), "transactions"),
        (partition, partition.glob("*.snapshot"), "producers"),
    ):
        parts = [row for path in below for row in mqindex.dataset(path, table).to_table().to_pylist()]
        rows = mqindex.dataset(whole, table).to_table().to_pylist()
        assert sorted(map(repr, parts)) == sorted(map(repr, rows)), table
        assert rows, table


def test_messages_and_records_are_those_of_a_scan(store: Path, partition: Path) -> None:
    for path, scan in ((store, rocketmq.scan), (partition, kafka.scan)):
        with scan(path) as batches:
            whole = Columns.concat(list(batches)).to_arrow()
        found = mqindex.dataset(path).to_table()
        assert set(found.schema.names) == set(whole.schema.names)
        assert found.select(whole.schema.names).equals(whole)


def test_times_of_index_entries_are_absolute(store: Path) -> None:
    entries = mqindex.dataset(store, "index_entries").to_table().to_pylist()
    messages = mqindex.dataset(store).to_table(columns=["phy_offset", "store_timestamp"]).to_pylist()
    stored = {row["phy_offset"]: row["store_timestamp"] for row in messages}
    assert all(abs(row["time"] - stored[row["phy_offset"]]) <= dt.timedelta(seconds=1) for row in entries)


def test_consumer_offsets_are_the_stores(tmp_path: Path) -> None:
    root = case("tx-delay-lmq-493").unpack(tmp_path)
    with rocketmq.MessageStore.open(root) as opened:
        expected = {
            (name.split("@")[0], name.split("@")[1], queue_id): at
            for name, offsets in opened.consumer_offsets.items()
            for queue_id, at in offsets.items()
        }
    rows = mqindex.dataset(root, "consumer_offsets").to_table().to_pylist()
    assert {(row["topic"], row["consumer_group"], row["queue_id"]): row["queue_offset"] for row in rows} == expected


def test_files_are_those_on_the_disk(store: Path) -> None:
    rows = mqindex.dataset(store, "files").to_table().to_pylist()
    assert {row["path"]: row["size"] for row in rows} == {
        str(path.relative_to(store)): path.stat().st_size
        for part in ("commitlog", "consumequeue", "index")
        for path in (store / part).rglob("*")
        if path.is_file()
    }


def test_what_brokers_write_for_themselves_is_decoded(tmp_path: Path) -> None:
    for name, records in {
        "__consumer_offsets-3": [KafkaRecord(bytes.fromhex(next(iter(COMMITS))), bytes.fromhex("0001" + KEY))],
        "__transaction_state-0": [KafkaRecord(bytes.fromhex(min(TRANSACTIONS)), bytes.fromhex("00000003746964"))],
        "__cluster_metadata-0": [KafkaRecord(bytes.fromhex(each)) for each in METADATA],
        "orders-0": [KafkaRecord()],
    }.items():
        writer = PartitionWriter(tmp_path / name)
        writer.append(records)
        writer.close()
    (tmp_path / ".lock").touch()
    commits = mqindex.sql('SELECT record_partition, kind, "group", topic FROM k.commits', k=tmp_path).fetchall()
    assert commits == [(3, "commit", "app", "orders")]
    of_three = mqindex.dataset(tmp_path / "__consumer_offsets-3", "commits")
    assert of_three.count_rows(filter=pc.field("record_offset") == 0) == 1
    assert of_three.count_rows(filter=pc.field("record_partition") == 2) == 0
    assert mqindex.dataset(tmp_path, "transaction_states").count_rows() == 1
    assert mqindex.dataset(tmp_path, "metadata").count_rows() == len(METADATA)
    assert "commits" not in mqindex.tables(tmp_path / "orders-0")


def test_markers_are_those_of_control_records(partition: Path) -> None:
    controls = mqindex.dataset(partition).to_table(columns=["offset"], filter=pc.field("is_control"))
    markers = mqindex.dataset(partition, "markers").to_table().to_pylist()
    assert [row["record_offset"] for row in markers] == controls["offset"].to_pylist()
    assert {row["kind"] for row in markers} == {"commit", "abort"}
    assert {row["record_topic"] for row in markers} == {"txn"}


# ---- what is refused


def test_another_table_and_a_path_without_tables_are_named(store: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected messages, units, .* or files of .*'records'"):
        mqindex.dataset(store, "records")
    with pytest.raises(ValueError, match=r"has no tables: expected RocketMQ's store, .* nothing that mqindex knows"):
        mqindex.dataset(tmp_path)
    (tmp_path / "checkpoint").write_bytes(bytes(4096))
    with pytest.raises(ValueError, match="got of the kind checkpoint"):
        mqindex.tables(tmp_path / "checkpoint")
    with pytest.raises(FileNotFoundError):
        mqindex.tables(tmp_path / "none")
    with pytest.raises(TypeError, match="depp"):
        mqindex.dataset(store, depp=True)


def test_queues_that_rocksdb_keeps_are_refused(store: Path) -> None:
    units = mqindex.dataset(store, "units", config={"storeType": "defaultRocksDB"}, broker_version="5.5.0")
    with pytest.raises(FileStateError, match="RocksDB"):
        units.to_table()


def test_a_filter_that_cannot_be_compared_is_refused_before_anything_is_read(store: Path) -> None:
    import pyarrow as pa

    messages = mqindex.dataset(store)
    for wrong in (pc.field("none") == 1, pc.field("topic") == 1, pc.field("store_timestamp") == 5):
        with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)):
            messages.scanner(filter=wrong)
    with pytest.raises(KeyError, match="none"):
        messages.scanner(columns=["none"])


def test_what_reads_datasets_in_cpp_is_told_how_this_one_is_read(store: Path) -> None:
    with pytest.raises(OSError, match="read through `scanner`"):
        ds.dataset([mqindex.dataset(store)]).to_table()
    with pytest.raises(ValueError, match="got another one"):
        mqindex.dataset(store).replace_schema(mqindex.dataset(store, "units").schema)


def test_missing_packages_are_named_with_what_installs_them(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    for gone, call in (("pyarrow", lambda: mqindex.dataset(store)), ("duckdb", lambda: mqindex.sql("SELECT 1"))):
        with monkeypatch.context() as without:
            for name in [
                name for name in sys.modules if name.startswith(("mqindex.tables.duckdb", "mqindex.tables.table_"))
            ]:
                without.delitem(sys.modules, name)
            without.setitem(sys.modules, gone, None)  # type: ignore[arg-type]
            with pytest.raises(ImportError, match=r"needs .*: pip install 'mqindex\[sql\]'"):
                call()


# ---- what reaches the readers


def test_a_filter_on_messages_reaches_the_scan(store: Path, asked: list[dict[str, Any]]) -> None:
    messages, field = mqindex.dataset(store), pc.field
    begin = dt.datetime(2023, 4, 1, tzinfo=UTC)
    ms = int(begin.timestamp() * 1000)
    for wanted, bounds in (
        (field("topic") == "T", {"topic": ["T"]}),
        (field("topic").isin(["B", "A"]) & (field("queue_id") == 3), {"topic": ["A", "B"], "queue_id": [3]}),
        (field("store_timestamp") >= begin, {"begin": ms}),
        (field("store_timestamp") < begin, {"end": ms + 1}),
        ((field("phy_offset") > 5) & (field("phy_offset") <= 9), {"start_offset": 5, "end_offset": 10}),
        (field("uniq_key") == "K", {"keys": ["K"]}),
        (field("keys") == "one two", {"keys": ["one"]}),
        (field("tags").isin(["A", "B"]), {"tags": "A || B"}),
        # these say nothing that a scan could be asked
        (field("topic") == "\N{REPLACEMENT CHARACTER}", {}),
        (field("tags") == "A || B", {}),
        (field("keys") == " ", {}),
        (field("topic").isin(["A", None]), {}),
        (field("store_timestamp") >= dt.datetime(1970, 1, 2, tzinfo=UTC), {}),
        (~(field("topic") == "T"), {}),
        ((field("topic") == "T") | (field("queue_id") == 1), {}),
        (pc.utf8_lower(field("topic")) == "t", {}),
    ):
        asked.clear()
        messages.to_table(columns=["size"], filter=wanted)
        assert [{name: call[name] for name in call if name != "columns"} for call in asked] == [bounds], wanted


def test_a_filter_on_records_reaches_the_scan(partition: Path, asked: list[dict[str, Any]]) -> None:
    field, begin = pc.field, dt.datetime(2023, 11, 14, tzinfo=UTC)
    for path, wanted, bounds in (
        (partition, field("offset") == 7, {"start_offset": 7, "end_offset": 8}),
        (partition, field("timestamp") >= begin, {"begin": int(begin.timestamp() * 1000)}),
        (partition, field("key") == b"\xff", {"keys": [b"\xff"]}),
        (partition, field("key") == b"", {}),
        (partition.parent, (field("topic") == "txn") & (field("partition") == 0), {"partitions": [("txn", 0)]}),
    ):
        asked.clear()
        mqindex.dataset(path).to_table(columns=["offset"], filter=wanted)
        assert [{name: call[name] for name in call if name != "columns"} for call in asked] == [bounds], wanted
    asked.clear()
    assert mqindex.dataset(partition.parent).count_rows(filter=field("topic") == "another") == 0
    assert mqindex.dataset(partition).count_rows(filter=(field("offset") < 5) & (field("offset") > 9)) == 0
    assert asked == []


def test_counting_reads_the_cheapest_column(store: Path, partition: Path, asked: list[dict[str, Any]]) -> None:
    import datafusion

    for path, cheap in ((store, "phy_offset"), (partition, "offset")):
        rows = mqindex.dataset(path)
        context = datafusion.SessionContext()
        context.register_dataset("rows", rows)
        counts = {
            rows.count_rows(),
            mqindex.sql("SELECT count(*) FROM r", r=rows).fetchall()[0][0],
            rows.lazy().select(pl.len()).collect().item(),
            pl.scan_pyarrow_dataset(rows).select(pl.len()).collect().item(),
            context.sql("SELECT count(*) AS n FROM rows").to_pylist()[0]["n"],
        }
        assert counts == {len(rows.to_table(columns=[cheap]))}
        narrow = (cheap,), ("is_transactional",)  # the second is what polars takes by itself
        assert {tuple(call["columns"]) for call in asked} <= set(narrow)
        asked.clear()


def test_only_columns_that_are_needed_are_read(store: Path, asked: list[dict[str, Any]]) -> None:
    messages = mqindex.dataset(store)
    longer = {"twice": pc.multiply(pc.field("size"), 2)}
    doubled = messages.to_table(columns=longer, filter=pc.field("queue_id") == 0)
    assert doubled.schema.names == ["twice"]
    assert set(asked.pop()["columns"]) == {"size", "queue_id"}
    assert mqindex.sql("SELECT max(size) FROM m WHERE tags = 'TagA'", m=messages).fetchall()
    assert set(asked.pop()["columns"]) == {"size", "tags"}


def test_polars_gives_keys_and_a_number_of_rows(partition: Path, asked: list[dict[str, Any]]) -> None:
    records = mqindex.dataset(partition)
    keys = [key for key in records.to_table(columns=["key"])["key"].to_pylist() if key]
    asked.clear()
    found = records.lazy().filter(pl.col("key") == keys[0]).select("offset").collect()
    assert found.height == keys.count(keys[0])
    assert asked[0]["keys"] == [keys[0]]
    first = records.lazy().select("offset", "value").head(3).collect()
    assert first.to_arrow().to_pylist() == records.head(3, columns=["offset", "value"]).to_pylist()
    after = records.lazy().filter(pl.col("offset") > 10).head(2).select("offset").collect()
    before = records.lazy().head(20).filter(pl.col("offset") > 10).select("offset").collect()
    assert after["offset"].to_list() == before["offset"].to_list()[:2]


# ---- a dataset as engines and people handle it


def test_a_dataset_is_pickled_filtered_sorted_and_joined(store: Path) -> None:
    messages = mqindex.dataset(store, cache=False)
    few = messages.filter(pc.field("queue_id") == 0).filter(pc.field("size") > 200)
    expected = messages.to_table(filter=(pc.field("queue_id") == 0) & (pc.field("size") > 200))
    again = pickle.loads(pickle.dumps(few))
    assert again.to_table().equals(expected)
    assert few.count_rows() == few.to_table().num_rows == sum(batch.num_rows for batch in few.to_batches())
    assert few.take([1, 0])["phy_offset"].to_pylist() == expected["phy_offset"].to_pylist()[1::-1]
    newest = few.sort_by([("phy_offset", "descending")]).to_table(columns=["phy_offset"])
    assert newest["phy_offset"].to_pylist() == expected["phy_offset"].to_pylist()[::-1]
    units = mqindex.dataset(store, "units")
    entries = mqindex.dataset(store, "index_entries")
    of_first = units.filter(pc.field("queue_offset") == 0).join(entries, "phy_offset", join_type="left semi")
    assert 0 < of_first.to_table().num_rows <= units.count_rows(filter=pc.field("queue_offset") == 0)
    assert [len(batch) for batch in few.to_batches(batch_size=2)][:2] == [2, 2]
    assert repr(units) == f"TableDataset({str(store)!r}, 'units')"


def test_a_table_is_written_batch_by_batch(store: Path, tmp_path: Path) -> None:
    messages = mqindex.dataset(store)
    ds.write_dataset(messages.scanner(filter=pc.field("queue_id") == 0).to_reader(), tmp_path, format="parquet")
    written = ds.dataset(tmp_path).to_table().sort_by("phy_offset")
    assert written.to_pylist() == messages.to_table(filter=pc.field("queue_id") == 0).to_pylist()


def test_sql_has_each_table_by_its_name(store: Path, partition: Path) -> None:
    messages, units = (mqindex.dataset(store, name).count_rows() for name in ("messages", "units"))
    count = "SELECT count(*) FROM "
    for name, expected in (("s", messages), ("s.messages", messages), ("s.units", units), ('"s.units"', units)):
        assert mqindex.sql(count + name, s=store).fetchall() == [(expected,)], name
    both = (
        'SELECT (SELECT count(*) FROM s.UNITS), (SELECT count(*) FROM "my log".batches), (SELECT count(*) FROM frame)'
    )
    frame = pl.DataFrame({"a": [1, 2]})
    found = mqindex.sql(both, s=str(store), frame=frame.to_arrow(), **{"my log": partition}).fetchall()
    assert found == [(units, mqindex.dataset(partition, "batches").count_rows(), 2)]
    with pytest.raises(ValueError, match="has no tables"):
        mqindex.sql("SELECT 1", s=store.parent)
    with pytest.raises(duckdb.CatalogException, match="query"):
        mqindex.sql("SELECT * FROM query", s=store)  # no variable is a table


def test_damage_is_told_and_the_rest_is_there(tmp_path: Path) -> None:
    copy = PartitionCase("410-plain-mono").closed(tmp_path)
    whole = mqindex.dataset(copy).count_rows()
    log = sorted(copy.glob("*.log"))[0]
    data = bytearray(log.read_bytes())
    data[3000] ^= 0xFF
    log.write_bytes(data)
    for table in ("records", "batches"):
        with pytest.warns(UserWarning, match=log.name):
            assert 0 < mqindex.dataset(copy, table).count_rows() < whole


# ---- what is left behind


def open_files(path: Path) -> list[str]:
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    maps = Path("/proc/self/maps").read_text().splitlines()
    return [
        *(os.readlink(link) for link in links if os.path.lexists(link) and str(path) in os.readlink(link)),
        *(line for line in maps if str(path) in line),
    ]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="open files are listed by Linux")
def test_a_query_that_is_given_up_leaves_no_file_and_no_thread(store: Path, partition: Path) -> None:
    threads = threading.active_count()
    for path in (store, partition):
        for table in mqindex.tables(path):
            rows = mqindex.dataset(path, table)
            assert rows.head(1).num_rows <= 1
            reader = rows.scanner().to_reader()
            next(iter(reader), None)
            batches = rows.to_batches()
            next(iter(batches), None)
            database = duckdb.connect()
            database.register("rows", rows)
            database.execute("SELECT * FROM rows LIMIT 1").fetchone()
            database.close()
            rows.lazy().head(1).collect()
            del reader, batches, database
            gc.collect()
            assert open_files(path) == [], table
    assert threading.active_count() == threads


@pytest.mark.parametrize("table", ["batches", "offset_index", "time_index", "transactions", "producers"])
def test_files_that_a_broker_deletes_meanwhile_are_said(table: str, tmp_path: Path) -> None:
    """Batches were missing without a word, and entries ended in a raw ENOENT."""
    partition = PartitionCase("410-txn").closed(tmp_path)
    ending = {"batches": "log", "offset_index": "index", "time_index": "timeindex", "transactions": "txnindex"}
    files = sorted(partition.glob(f"*.{ending.get(table, 'snapshot')}"))
    whole = mqindex.dataset(partition, table).to_table()
    rows = mqindex.dataset(partition, table).to_batches(batch_size=1)
    found = [next(rows)]
    files[1].unlink()
    with pytest.warns(UserWarning, match=rf"^{files[1]} was deleted by a broker before it was read$"):
        found += rows
    assert {row["segment"] for batch in found for row in batch.to_pylist()} == {
        at for at in whole["segment"].to_pylist() if at != int(files[1].stem)
    }
    with pytest.raises(FileNotFoundError):
        mqindex.dataset(files[1], table).to_table()


def test_a_process_that_gives_up_a_query_ends(partition: Path) -> None:
    program = (
        "import sys, mqindex\n"
        "rows = mqindex.dataset(sys.argv[1], 'batches')\n"
        "print(rows.head(2).num_rows)\n"
        "kept = rows.scanner().to_reader()\n"
        "print(kept.read_next_batch().num_rows > 0)\n"
        "import duckdb\n"
        "left = duckdb.connect()\n"
        "left.register('rows', rows)\n"
        "left.execute('SELECT * FROM rows').fetchone()\n"
    )
    command = [sys.executable, "-c", program, str(partition)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["2", "True"]), done.stderr


def test_a_generator_that_is_not_read_opens_nothing(store: Path, asked: list[dict[str, Any]]) -> None:
    kept: Iterator[Any] = mqindex.dataset(store).to_batches()
    assert asked == []
    del kept


def test_an_empty_store_has_tables_without_rows(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    for table in mqindex.tables(tmp_path):
        rows = mqindex.dataset(tmp_path, table)
        assert rows.to_table().num_rows == 0
        assert mqindex.sql("SELECT count(*) FROM r", r=rows).fetchall() == [(0,)]


@pytest.mark.parametrize("terms", [10, 300, 400, 700, 1500])
def test_a_filter_of_any_depth_has_its_rows(store: Path, terms: int) -> None:
    messages = mqindex.dataset(store)
    wanted = functools.reduce(operator.or_, (pc.field("phy_offset") == number for number in range(terms)))
    deep = functools.reduce(operator.or_, (pl.col("phy_offset") == number for number in range(min(terms, 400))))
    assert messages.to_table(columns=["phy_offset"], filter=wanted)["phy_offset"].to_pylist()[0] == 0
    assert messages.lazy().filter(deep).select("phy_offset").collect()["phy_offset"][0] == 0


@pytest.mark.parametrize("number", [-(2**63), -1, 2**31, 2**63 - 1, 2**64 - 1])
def test_numbers_at_the_ends_of_their_types(store: Path, partition: Path, number: int) -> None:
    import pyarrow as pa

    value = pa.scalar(number, pa.int64() if number < 2**63 else pa.uint64())
    for path in (store, partition):
        for table in mqindex.tables(path):
            rows = mqindex.dataset(path, table)
            whole = rows.to_table()
            for name in (field.name for field in rows.schema if pa.types.is_integer(field.type)):
                for compare in (operator.le, operator.ge, operator.eq):
                    wanted = compare(pc.field(name), value)
                    try:
                        expected = whole.filter(wanted).num_rows
                    except pa.ArrowInvalid:  # Arrow does not compare them
                        continue
                    assert rows.count_rows(filter=wanted) == expected, (table, name, compare)
    times = mqindex.dataset(store).to_table(columns=["store_timestamp"])["store_timestamp"]
    if number < 2**63:
        at = pa.scalar(number, pa.timestamp("ms", "UTC"))
        assert mqindex.dataset(store).count_rows(filter=pc.field("store_timestamp") >= at) == sum(
            one is not None and one.value >= number for one in times
        )
