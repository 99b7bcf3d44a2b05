"""The contract: every name a user calls, its parameters and their defaults. A change here is a breaking change."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import mqindex
from mqindex import errors
from mqindex.kafka.options import PartitionArguments, partition_options
from mqindex.rocketmq.options import StoreArguments, store_options
from tests.api.test_import_rules import modules, source
from tests.support.each import for_each

STORE_OPTIONS = "config=None, commitlog=None, hash_slot_num=None, index_num=None, broker_version=None"
PARTITION_OPTIONS = "kafka_version=None, index_interval_bytes=None, max_index_size=10485760, check_crc=True"
MAX = 2**63 - 1

EXPORTS = {
    "mqindex": {
        "Columns",
        "Hits",
        "__version__",
        "dataset",
        "engines",
        "errors",
        "health",
        "kafka",
        "kernels",
        "report",
        "rocketmq",
        "sql",
        "tables",
    },
    "mqindex.engines": {"Engine", "LocalEngine", "OnProgress", "Progress"},
    "mqindex.report": {
        "Catalogue",
        "Finding",
        "Kind",
        "Obstacle",
        "RebuildReport",
        "RepairReport",
        "Report",
        "Severity",
        "Start",
        "Value",
    },
    "mqindex.health": {
        "EARLIEST",
        "LATEST",
        "MAX_BINS",
        "Histogram",
        "Read",
        "Share",
        "Site",
        "Text",
        "TimeBins",
        "TimeSeries",
        "a_day",
        "plain",
        "width_for",
    },
    "mqindex.rocketmq": {
        "AppendMessageResult",
        "BatchConsumeQueue",
        "Checkpoint",
        "CommitLog",
        "ConsumeQueue",
        "ConsumeQueueExt",
        "ConsumeQueueTable",
        "ConsumerOffsets",
        "FollowReport",
        "GetMessageResult",
        "GetMessageStatus",
        "IndexFile",
        "IndexHeader",
        "IndexService",
        "Message",
        "MessageStore",
        "NewMessage",
        "PutMessagesResult",
        "QueryMessageResult",
        "QueryOffsetResult",
        "Scan",
        "StoreHealth",
        "TopicConfig",
        "follow",
        "hash_slots",
        "key_hash",
        "key_hashes",
        "optimize",
        "offsets_for_time",
        "rebuild",
        "repair",
        "report",
        "scan",
        "tag_hash",
        "undo_repair",
        "verify",
    },
    "mqindex.kafka": {
        "AbortedTxn",
        "BatchFault",
        "LogDirHealth",
        "LogOffsetPosition",
        "LogSegment",
        "OffsetIndex",
        "OffsetPosition",
        "PartitionLog",
        "PartitionOffsetPosition",
        "Scan",
        "ScanDamage",
        "TimeIndex",
        "TimestampOffset",
        "TransactionIndex",
        "TxnIndexSearchResult",
        "decode_commits",
        "decode_markers",
        "decode_metadata",
        "decode_transactions",
        "offsets_for_time",
        "rebuild",
        "repair",
        "report",
        "scan",
        "undo_repair",
        "verify",
    },
    "mqindex.spark": {
        "SparkEngine",
        "build_index",
        "build_partition",
        "hash_slot",
        "key_hash",
        "offset_for_timestamp",
        "rebuild",
        "register",
        "repair",
        "select_partition",
        "select_phy_offset",
        "verify",
    },
}

# function -> parameters as one would write them; what stands behind "*" may be given by name only
SIGNATURES = {
    "mqindex.kernels": "",
    "mqindex.dataset": "path, table=None",
    "mqindex.sql": "query",
    "mqindex.tables": "path",
    "mqindex.engines.LocalEngine": "workers=None",
    "mqindex.kafka.OffsetIndex.open": "path, *, base_offset=None, writable=False",
    "mqindex.kafka.OffsetIndex.create": "path, base_offset, *, max_index_size=10485760",
    "mqindex.kafka.OffsetIndex.lookup": "target",
    "mqindex.kafka.OffsetIndex.lookup_many": "targets",
    "mqindex.kafka.OffsetIndex.append_many": "offsets, positions",
    "mqindex.kafka.OffsetIndex.truncate_to": "offset",
    "mqindex.kafka.OffsetIndex.resize": "new_size",
    "mqindex.kafka.TimeIndex.open": "path, *, base_offset=None, writable=False",
    "mqindex.kafka.TimeIndex.create": "path, base_offset, *, max_index_size=10485760",
    "mqindex.kafka.TimeIndex.maybe_append": "timestamp, offset, skip_full_check=False",
    "mqindex.kafka.TransactionIndex.open": "path, *, base_offset=None, writable=False",
    "mqindex.kafka.TransactionIndex.collect_aborted_txns": "fetch_offset, upper_bound_offset",
    "mqindex.kafka.LogSegment.open": "log_path, *, base_offset=None",
    "mqindex.kafka.LogSegment.batches": "start=0, stop=None, *, check_crc=True",
    "mqindex.kafka.LogSegment.records": "start=0, stop=None, *, columns=None, check_crc=True",
    "mqindex.kafka.LogSegment.read": "offset, *, max_bytes=1048576, columns=None",
    "mqindex.kafka.LogSegment.find_offset_by_timestamp": "ms, starting_offset=None",
    "mqindex.kafka.LogSegment.translate_offset": "offset, starting_position=0",
    "mqindex.kafka.LogSegment.fetch_upper_bound_offset": "fetch, fetch_size",
    "mqindex.kafka.LogSegment.recover": "*, index_interval_bytes=4096, max_index_size=10485760, kafka_version=None, "
    "check_crc=True, stretch=0",
    "mqindex.kafka.PartitionLog.open": "directory",
    "mqindex.kafka.PartitionLog.offset_for_timestamp": "ms",
    "mqindex.kafka.PartitionLog.offsets_for_timestamps": "ms",
    "mqindex.kafka.PartitionLog.translate_offset": "offset",
    "mqindex.kafka.PartitionLog.collect_aborted_transactions": "start, upper",
    "mqindex.kafka.PartitionLog.read": "offset, *, max_bytes=1048576, isolation_level='read_uncommitted', columns=None",
    "mqindex.kafka.decode_commits": "records",
    "mqindex.kafka.decode_markers": "records",
    "mqindex.kafka.decode_metadata": "records",
    "mqindex.kafka.decode_transactions": "records",
    "mqindex.kafka.verify": f"directory, *, deep=False, {PARTITION_OPTIONS}, engine=None",
    "mqindex.kafka.report": f"directory, *, deep=False, {PARTITION_OPTIONS}, engine=None",
    "mqindex.kafka.rebuild": f"directory, out, *, overwrite=False, {PARTITION_OPTIONS}, engine=None",
    "mqindex.kafka.repair": (
        f"directory, *, deep=False, dry_run=False, cut_damaged=False, {PARTITION_OPTIONS}, engine=None"
    ),
    "mqindex.kafka.offsets_for_time": "directory, ms, *, topics=None, storage_options=None",
    "mqindex.kafka.scan": (
        "path, *, partitions=None, begin=None, end=None, start_offset=None, end_offset=None, keys=None, "
        f"isolation_level=None, columns=None, cache=None, {PARTITION_OPTIONS}"
    ),
    "mqindex.kafka.undo_repair": "directory, backup",
    "mqindex.rocketmq.undo_repair": "store, backup",
    "mqindex.rocketmq.key_hash": "key",
    "mqindex.rocketmq.key_hashes": "keys, *, topic=None",
    "mqindex.rocketmq.hash_slots": "keys, hash_slot_num, *, topic=None",
    "mqindex.rocketmq.IndexFile.create": "path, *, hash_slot_num=5000000, index_num=20000000, end_phy_offset=0, "
    "end_timestamp=0, sparse=False",
    "mqindex.rocketmq.IndexFile.open": "path, *, hash_slot_num=None, index_num=None, writable=False",
    "mqindex.rocketmq.IndexFile.put_key": "key, phy_offset, store_timestamp",
    "mqindex.rocketmq.IndexFile.put_keys": "keys, phy_offsets, store_timestamps, *, topic=None",
    "mqindex.rocketmq.IndexFile.select_phy_offset": f"key, *, max_num=64, begin=0, end={MAX}",
    "mqindex.rocketmq.IndexFile.select_phy_offsets": f"keys, *, topic=None, max_num=64, begin=0, end={MAX}",
    "mqindex.rocketmq.IndexFile.is_write_full": "",
    "mqindex.rocketmq.IndexFile.is_time_matched": "begin, end",
    "mqindex.rocketmq.IndexFile.entries": "start=1, stop=None",
    "mqindex.rocketmq.IndexFile.slots": "",
    "mqindex.rocketmq.IndexFile.flush": "",
    "mqindex.rocketmq.IndexFile.close": "",
    "mqindex.rocketmq.IndexService.open": "directory, *, hash_slot_num=None, index_num=None, writable=False",
    "mqindex.rocketmq.IndexService.query_offset": f"topic, key, *, max_num=64, begin=0, end={MAX}",
    "mqindex.rocketmq.IndexService.query_offsets": f"topic, keys, *, max_num=64, begin=0, end={MAX}",
    "mqindex.rocketmq.IndexService.build_index": "topic, keys, phy_offsets, store_timestamps",
    "mqindex.rocketmq.IndexService.delete_expired_file": "min_phy_offset",
    "mqindex.rocketmq.IndexService.flush": "",
    "mqindex.rocketmq.IndexService.close": "",
    "mqindex.rocketmq.CommitLog.open": "directories, *, mapped_file_size=None, writable=False, flush=None, "
    "config=None, broker_version=None",
    "mqindex.rocketmq.CommitLog.append_message": "message, *, queue_offset",
    "mqindex.rocketmq.CommitLog.append_messages": "messages, *, queue_offset=None, whole=False",
    "mqindex.rocketmq.CommitLog.flush": "",
    "mqindex.rocketmq.CommitLog.scan": "start=None, stop=None, *, columns=None, check_crc=False",
    "mqindex.rocketmq.CommitLog.get_message": "phy_offset, size=None",
    "mqindex.rocketmq.tag_hash": "tags",
    "mqindex.rocketmq.ConsumeQueue.open": "directory, *, file_size=None, writable=False, ext=None",
    "mqindex.rocketmq.ConsumeQueue.units": "start=None, stop=None",
    "mqindex.rocketmq.ConsumeQueue.select": "tags, start=None, stop=None",
    "mqindex.rocketmq.ConsumeQueue.get_offset_in_queue_by_time": "ms, commit_log, *, boundary=None",
    "mqindex.rocketmq.ConsumeQueue.put_message_position_info": "phy_offset, size, tags_code, queue_offset",
    "mqindex.rocketmq.ConsumeQueue.correct_min_offset": "min_phy_offset",
    "mqindex.rocketmq.ConsumeQueue.truncate_dirty_logic_files": "phy_offset",
    "mqindex.rocketmq.ConsumeQueue.flush": "",
    "mqindex.rocketmq.ConsumeQueue.close": "",
    "mqindex.rocketmq.ConsumeQueueTable.open": "directory, *, file_size=None, writable=False, ext_directory=None",
    "mqindex.rocketmq.ConsumeQueueTable.queues": "",
    "mqindex.rocketmq.ConsumeQueueTable.get": "topic, queue_id",
    "mqindex.rocketmq.ConsumeQueueTable.find_or_create": "topic, queue_id",
    "mqindex.rocketmq.ConsumeQueueExt.open": "directory",
    "mqindex.rocketmq.ConsumeQueueExt.get": "address",
    "mqindex.rocketmq.ConsumeQueueExt.units": "",
    "mqindex.rocketmq.BatchConsumeQueue.open": "directory",
    "mqindex.rocketmq.BatchConsumeQueue.units": "start=None, stop=None",
    "mqindex.rocketmq.BatchConsumeQueue.get": "queue_offset",
    "mqindex.rocketmq.BatchConsumeQueue.get_offset_in_queue_by_time": "ms, *, boundary='lower'",
    "mqindex.rocketmq.MessageStore.open": f"root, *, {STORE_OPTIONS}, writable=False",
    "mqindex.rocketmq.MessageStore.get_message": "topic, queue_id, offset, *, max_msg_nums=32, tags=None",
    "mqindex.rocketmq.MessageStore.get_messages": "topic, queue_id, offset, *, max_msg_nums, tags=None, columns=None",
    "mqindex.rocketmq.MessageStore.query_message": f"topic, key, *, max_num=64, begin=0, end={MAX}, exact=False",
    "mqindex.rocketmq.MessageStore.look_message_by_offset": "phy_offset",
    "mqindex.rocketmq.MessageStore.view_message": "msg_id",
    "mqindex.rocketmq.MessageStore.put_message": "message",
    "mqindex.rocketmq.MessageStore.put_messages": "messages, *, whole=False",
    "mqindex.rocketmq.MessageStore.reput": "*, follow=False, stop=None, progress=None",
    "mqindex.rocketmq.MessageStore.flush": "",
    "mqindex.rocketmq.verify": f"store, *, deep=False, cache=None, {STORE_OPTIONS}, engine=None",
    "mqindex.rocketmq.offsets_for_time": f"store, ms, *, topics=None, boundary='lower', {STORE_OPTIONS}",
    "mqindex.rocketmq.scan": "store, *, topic=None, queue_id=None, begin=None, end=None, start_offset=None, "
    f"end_offset=None, keys=None, tags=None, columns=None, decompress=True, cache=None, {STORE_OPTIONS}",
    "mqindex.rocketmq.follow": f"store, out, *, stop, progress=None, interval=0.001, {STORE_OPTIONS}, engine=None",
    "mqindex.rocketmq.rebuild": f"store, out, *, parts=None, {STORE_OPTIONS}, split_size={128 << 20}, "
    "overwrite=False, cache=None, engine=None",
    "mqindex.rocketmq.optimize": "index, out, *, hash_slot_num=None, index_num=None, overwrite=False, engine=None",
    "mqindex.rocketmq.report": f"store, *, deep=False, {STORE_OPTIONS}, engine=None",
    "mqindex.rocketmq.repair": f"store, *, parts=None, deep=False, dry_run=False, {STORE_OPTIONS}, engine=None",
    "mqindex.spark.register": "spark",
    "mqindex.spark.SparkEngine": "spark",
    "mqindex.spark.rebuild": "spark, store, out",
    "mqindex.spark.repair": "spark, store",
    "mqindex.spark.verify": "spark, store",
    "mqindex.spark.build_index": "df, out, *, hash_slot_num=5000000, index_num=20000000",
    "mqindex.spark.select_phy_offset": f"index_dir, *, topic=None, max_num=64, begin=0, end={MAX}, "
    "hash_slot_num=None, index_num=None",
    "mqindex.spark.key_hash": "column",
    "mqindex.spark.offset_for_timestamp": "directory",
    "mqindex.spark.hash_slot": "column, n",
    "mqindex.spark.select_partition": "index_dir",
    "mqindex.spark.build_partition": "out, *, hash_slot_num, index_num",
}
PROPERTIES = {
    "mqindex.rocketmq.IndexFile": {"header"},
    "mqindex.rocketmq.IndexService": {"files"},
    "mqindex.rocketmq.CommitLog": {"min_phy_offset", "max_phy_offset", "flushed_phy_offset", "store_timestamp"},
    "mqindex.rocketmq.ConsumeQueue": {"files", "min_offset_in_queue", "max_offset_in_queue", "max_phy_offset"},
    "mqindex.rocketmq.BatchConsumeQueue": {"files", "min_offset_in_queue", "max_offset_in_queue"},
}
ERROR_TREE = {
    "MQIndexError": (Exception,),
    "FormatError": (errors.MQIndexError, ValueError),
    "TruncatedFileError": (errors.FormatError,),
    "BadMagicError": (errors.FormatError,),
    "CorruptIndexError": (errors.FormatError,),
    "GeometryError": (errors.MQIndexError, ValueError),
    "CapacityError": (errors.MQIndexError,),
    "IndexFullError": (errors.CapacityError,),
    "OffsetOverflowError": (errors.CapacityError, OverflowError),
    "OutOfOrderError": (errors.MQIndexError, ValueError),
    "FileStateError": (errors.MQIndexError, ValueError),
    "ClosedFileError": (errors.FileStateError,),
    "ReadOnlyFileError": (errors.FileStateError,),
    "StoreInUseError": (errors.FileStateError,),
    "OutputExistsError": (errors.FileStateError,),
    "RebuildError": (errors.MQIndexError,),
}


def find(path: str) -> Any:
    """The object that a dotted name leads to, through as many modules as there are."""
    parts = path.split(".")
    if parts[1] == "spark":
        pytest.importorskip("pyspark")
    deep = 1 if parts[1] in ("dataset", "kernels", "sql", "tables") else 2
    thing = importlib.import_module(".".join(parts[:deep]))
    for part in parts[deep:]:
        thing = getattr(thing, part)
    return thing


def wanted_parameters(written: str) -> list[tuple[str, str]]:
    """`"a, *, b=1"` becomes `[("a", ""), ("*", ""), ("b", "1")]`."""
    parts = [part.strip().partition("=") for part in written.split(",") if part.strip()]
    return [(name, default) for name, _, default in parts]


@pytest.mark.parametrize("module", EXPORTS)
def test_exported_names(module: str) -> None:
    if module == "mqindex.spark":
        pytest.importorskip("pyspark")
    loaded = importlib.import_module(module)
    assert set(loaded.__all__) == EXPORTS[module]
    assert all(hasattr(loaded, name) for name in loaded.__all__)
    assert set(dir(loaded)) >= EXPORTS[module]


def test_only_public_modules_have_a_list_of_names() -> None:
    """Elsewhere it was one more place to keep in step; what is internal to a module begins with `_`."""
    listing = {name for name in modules() if re.search(r"^__all__\b", source(name).read_text(), re.MULTILINE)}
    assert listing == {*EXPORTS, "mqindex.errors"}


@for_each(SIGNATURES)
def test_parameters(path: str) -> None:
    wanted = wanted_parameters(SIGNATURES[path])
    parameters = {name: p for name, p in inspect.signature(find(path)).parameters.items() if name != "self"}
    positional = [name for name, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [name for name, _ in wanted]
    assert positional == (names[: names.index("*")] if "*" in names else names)
    for name, default in wanted:
        if name == "*":
            continue
        assert name in parameters, f"{path} has no parameter {name}"
        got = parameters[name].default
        assert default == ("" if got is inspect.Parameter.empty else repr(got)), name


@pytest.mark.parametrize(
    ("arguments", "home"), [(StoreArguments, store_options), (PartitionArguments, partition_options)]
)
def test_shared_options_are_typed_as_they_are_taken(arguments: type, home: Callable[..., object]) -> None:
    """A type checker sees the options of `**given`, a reader those of the function that takes them: the same ones."""
    taken = {name: p for name, p in inspect.signature(home).parameters.items() if p.kind is p.KEYWORD_ONLY}
    types = {name: p.annotation for name, p in taken.items()}
    assert {name: one.__forward_arg__ for name, one in arguments.__annotations__.items()} == types


@pytest.mark.parametrize("path", ["mqindex.rocketmq.verify", "mqindex.rocketmq.MessageStore.open"])
def test_a_misspelt_option_is_refused_with_the_nearest_name(path: str) -> None:
    with pytest.raises(
        TypeError, match=r"\(\) got an unexpected keyword argument 'index_nun'. Did you mean 'index_num'"
    ):
        find(path)("nowhere", index_nun=1)


@for_each(PROPERTIES)
def test_properties(path: str) -> None:
    assert all(isinstance(inspect.getattr_static(find(path), name), property) for name in PROPERTIES[path])


@pytest.mark.parametrize(
    "path",
    [
        "IndexFile",
        "IndexService",
        "CommitLog",
        "ConsumeQueue",
        "ConsumeQueueExt",
        "ConsumeQueueTable",
        "BatchConsumeQueue",
        "MessageStore",
    ],
)
def test_what_is_opened_is_a_context_manager(path: str) -> None:
    assert {"__enter__", "__exit__", "close"} <= set(dir(find(f"mqindex.rocketmq.{path}")))


def test_error_tree() -> None:
    assert set(errors.__all__) == set(ERROR_TREE)
    assert {name: getattr(errors, name).__bases__ for name in ERROR_TREE} == ERROR_TREE


@pytest.mark.parametrize("order", ["import mqindex.{0}.{1}", "from mqindex.{0}.{1} import {1}"])
def test_a_function_is_not_hidden_by_the_module_of_its_name(order: str) -> None:
    names = [("rocketmq", name) for name in ("optimize", "rebuild", "repair", "report", "verify")]
    names += [("kafka", name) for name in ("rebuild", "repair", "report", "verify")]
    lines = [order.format(*name) for name in names] + ["from mqindex import kafka, rocketmq"]
    lines += [f"assert callable({room}.{name}), {room}.{name}" for room, name in names]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version_is_a_release_number() -> None:
    assert all(part.isdecimal() for part in mqindex.__version__.split(".")[:2])
