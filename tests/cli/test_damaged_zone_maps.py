"""A zone map that is damaged changes no answer and no exit code, and a line on stderr says so, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("default")

TIME = {"rocketmq": "store_timestamp", "kafka": "timestamp"}


@pytest.mark.parametrize("broker", TIME)
@pytest.mark.parametrize("command", ["messages", "sql"])
def test_it_is_said_and_written_anew(
    broker: str, command: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = case("basic-493").unpack(tmp_path) if broker == "rocketmq" else PartitionCase("410-txn").closed(tmp_path)
    query = f"SELECT count(*) FROM t WHERE {TIME[broker]} >= '2001-01-01'"
    asked = (
        ("messages", home, "--begin", "2001-01-01", "--json") if command == "messages" else ("sql", query, f"t={home}")
    )
    whole = shell(*asked)
    assert (whole.status, whole.err) == (0, "") == (shell(*asked).status, shell(*asked).err)
    maps = sorted((tmp_path / "cache" / "mqindex" / "zones").iterdir())
    good = [path.read_bytes() for path in maps]
    maps[0].write_bytes(good[0][:-1] + bytes([good[0][-1] ^ 1]))
    again = shell(*asked)
    assert (again.status, again.out) == (whole.status, whole.out)
    assert again.err == (
        f"mqindex: warning: zone map not used, its file has a wrong checksum: {maps[0]}; the log is read instead, the "
        "answer is the same, and a search for a time writes the map anew: nothing to do\n"
    )
    assert [path.read_bytes() for path in maps] == good
    assert shell(*asked).err == ""
