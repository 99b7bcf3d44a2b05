"""Times on a command line: absolute, with a zone, and before now."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mqindex.cli.times import milliseconds
from mqindex.wording.text import iso
from tests.cli.conftest import Shell, Store
from tests.support.golden_kafka import PartitionCase

NOW = 1_700_000_000_123
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1700000000123", NOW),
        ("-1", -1),
        ("now", NOW),
        ("-1h", NOW - HOUR),
        ("+90s", NOW + 90_000),
        ("-2d30m", NOW - 48 * HOUR - HOUR // 2),
        ("-1w2d3h4m5s", NOW - (9 * 24 + 3) * HOUR - 245_000),
        ("2023-11-14T22:13:20.123Z", NOW),
        ("2023-11-14T22:13:20.123456Z", NOW),
        ("2023-11-14T15:13:20.123-07:00", NOW),
        ("2023-11-14T22:13:20.123", NOW),
        ("2023-11-14", NOW - NOW % (24 * HOUR)),
    ],
)
def test_what_is_taken(text: str, moment: int) -> None:
    assert milliseconds(text, now=NOW) == moment


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1h", "'1h' may be before or after now: expected -1h or \\+1h"),
        ("20231114", "'20231114' may be a date or ms since the epoch: expected a date with dashes"),
        ("20231114221320", "may be a date or ms"),
        ("-1M", "'-1M': expected ms since the epoch, 2026-11-21T08:00\\+08:00 .*UTC.*, now, or -1h"),
        ("-30m2d", "expected ms"),
        ("-", "expected ms"),
        ("-1h ago", "expected ms"),
        ("-h", "expected ms"),
        ("Now", "expected ms"),
        ("08:00", "expected ms"),
        ("1_000", "expected ms"),
        ("١٢", "expected ms"),
        ("", "expected ms"),
        ("9" * 30, "expected 64 bits"),
        ("9" * 6000, "expected 64 bits"),
        ("-" + "9" * 30 + "w", "expected 64 bits"),
        ("-" + "9" * 6000 + "w", "expected 64 bits"),
        ("2023-11-14T25:00Z", "expected ms"),
    ],
)
def test_what_is_not_clear_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        milliseconds(text, now=NOW)


def test_every_time_of_a_command_line_may_be_before_now(shell: Shell, basic: Store) -> None:
    found = next(one for one in basic.case.truth["messages"] if one["topic"] == "BBTopic" and one["uniqKey"])
    query = ["query", basic.root, "--topic", "BBTopic", found["uniqKey"]]
    stored = found["storeTimestamp"]
    back = (int(time.time() * 1000) - stored) // 1000
    assert shell(*query, "--begin", f"-{back + 100}s", "--end", "now").status == 0
    assert shell(*query, "--begin", "-1s").status == 1
    assert shell(*query, "--end", f"-{back + 100}s").status == 1
    east = [iso(stored + 8 * HOUR + second).removesuffix("Z") + "+08:00" for second in (-1000, 1000)]
    assert shell(*query, "--begin", east[0], "--end", east[1]).status == 0
    unclear = shell(*query, "--begin", "1h")
    assert (unclear.status, unclear.out) == (2, "")
    assert "'--begin': '1h' may be before or after now: expected -1h or +1h" in unclear.err


def test_a_partition_is_asked_for_a_time_before_now(shell: Shell, tmp_path: Path) -> None:
    partition = PartitionCase("410-plain-mono").closed(tmp_path)
    first = shell("query", partition, "--timestamp", "0", "--json").json[0]["found_offset"]
    assert shell("query", partition, "--timestamp", "-2600w", "--json").json[0]["found_offset"] == first
    assert shell("query", partition, "--timestamp", "-", "--json", stdin=b"-2600w\n").json[0]["found_offset"] == first
    assert shell("query", partition, "--timestamp", "now").status == 1
