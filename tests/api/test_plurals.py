"""A noun in a message agrees with its number: "1 unit", and never "1 units"."""

from __future__ import annotations

import re

from mqindex import kafka, rocketmq
from mqindex._words import plural
from tests.api.test_import_rules import modules, source
from tests.crash.test_kafka_repair import make_partition
from tests.support.each import for_each
from tests.support.small_store import OPTIONS, make_small_store

COUNTED = re.compile(
    r"\}[ ](?:\w+[ ])?(?:entries|units|messages|files|records|batches|slots|keys|segments|partitions|queues|topics"
    r"|places|frames|rows|strings|offsets|findings|workers|tasks|transactions|markers|producers|headers)\b(?!/)"
)


@for_each(modules())
def test_no_message_has_a_number_and_a_plural_that_is_written_out(module: str) -> None:
    lines = source(module).read_text().splitlines()
    found = [line.strip() for line in lines if COUNTED.search(line) and "plural(" not in line]
    assert found == []


def test_the_rule_sees_what_it_forbids() -> None:
    assert COUNTED.search('f"{count} units lead"')
    assert COUNTED.search('f"{count:,} index entries"')
    assert not COUNTED.search("f\"{plural(count, 'unit')} behind\"")
    assert [plural(n, noun) for n in (0, 1, 2) for noun in ("batch", "entry", "key", "index")] == [
        "0 batches", "0 entries", "0 keys", "0 indexes",
        "1 batch", "1 entry", "1 key", "1 index",
        "2 batches", "2 entries", "2 keys", "2 indexes",
    ]  # fmt: skip


def test_findings_of_one(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """ "expected 1 units" and "expected 1 entries" were what an operator read."""
    store = make_small_store(tmp_path / "store")
    for path in sorted((store / "consumequeue").rglob("0*"))[-1:]:
        path.unlink()
    partition = make_partition(tmp_path / "t-0")
    min(partition.glob("*.timeindex")).unlink()
    config = {"mappedFileSizeConsumeQueue": 240}
    reports = rocketmq.verify(store, config=config, **OPTIONS), kafka.verify(partition, index_interval_bytes=100)
    texts = [str(finding) for report in reports for finding in report.findings] + reports[0].actions
    assert texts
    assert not [text for text in texts if re.search(r"\b1 \w+(?:ies|[^s]s)\b", text)]
