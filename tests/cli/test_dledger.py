"""What the commands say of a store whose log DLedger keeps."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Shell
from tests.support.dledger import to_dledger
from tests.support.small_store import make_small_store


def test_commands_say_it_and_exit_2(tmp_path: Path, shell: Shell) -> None:
    root = make_small_store(tmp_path / "store")
    to_dledger(root)
    out = tmp_path / "out"
    for command in (
        ["verify", root], ["repair", root], ["repair", root, "--dry-run"], ["rebuild", root, "--out", out],
        ["follow", root, "--out", out], ["report", root, "--out", out], ["message", root, "0"], ["info", root],
        ["query", root, "--topic", "Topic0", "--exact", "k0"],
    ):  # fmt: skip
        done = shell(*command)
        assert done.status == 2, command
        assert "a DLedger log, which mqindex does not read" in done.err, command
    assert not out.exists()
    assert shell("query", root, "--topic", "Topic0", "k1").status == 0  # by the index alone, which is a plain one


def test_a_query_says_it_where_the_configuration_does(tmp_path: Path, shell: Shell) -> None:
    root, conf = make_small_store(tmp_path / "store"), tmp_path / "broker.conf"
    conf.write_text("maxHashSlotNum=5\nmaxIndexNum=16\n")
    query = ("query", root, "--topic", "Topic0", "k1", "--broker-conf", conf)
    assert shell(*query).status == 0
    conf.write_text("maxHashSlotNum=5\nmaxIndexNum=16\nenableDLegerCommitLog=true\n")
    done = shell(*query)
    assert (done.status, done.out) == (2, "")
    assert "a DLedger log, which mqindex does not read" in done.err
    assert shell("query", root / "index", *query[2:]).status == 0
