"""A package that is missing is told apart from one that is there and cannot be loaded."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from mqindex._needs import needing
from mqindex.files.places.place import place_of
from mqindex.kafka.log import codecs
from mqindex.rocketmq.messages import body

CALLS = {
    "obstore": lambda: place_of("s3://a"),
    "hdfs_native": lambda: place_of("hdfs://a"),
    "cramjam": lambda: codecs._cramjam("zstd"),
    "cramjam ": lambda: body._cramjam("lz4", b""),
}


@pytest.mark.parametrize("package", CALLS)
def test_what_cannot_be_loaded_is_told_with_the_reason(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All were told to install what they had."""
    name = package.strip()
    (tmp_path / f"{name}.py").write_text("import a_part_that_is_missing")
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=f"^{name} cannot be loaded: No module named 'a_part_that_is_missing'$"):
        CALLS[package]()
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"needs? {name.replace('_', '-')}: pip install 'mqindex\[\w+\]'$"):
        CALLS[package]()


def test_what_is_there_is_loaded() -> None:
    with needing("needs nothing", "json"):
        assert importlib.import_module("json")
