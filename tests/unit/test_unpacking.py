"""Archives appear whole, in place of nothing."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.errors import FormatError, OutputExistsError
from mqindex.files import disk
from mqindex.files.results.unpacking import unpack
from tests.support.failing_calls import FailingCall

TWO = {"a": None, "a/empty": b"", "a/deep/file": b"1", "b": None, "b/file": b"2"}


def packed(members: dict[str, bytes | None], kind: bytes = tarfile.REGTYPE) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.type, member.size = (tarfile.DIRTYPE, 0) if content is None else (kind, len(content))
            member.mode, member.uid = 0o4777, 4242
            tar.addfile(member, io.BytesIO(content or b""))
    file.seek(0)
    return file


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_directories_appear_with_empty_files_and_rights_of_new_ones(tmp_path: Path) -> None:
    out = tmp_path / "not" / "there"
    assert unpack(packed(TWO), str(out)) == [str(out / "a"), str(out / "b")]
    assert tree(out) == {name: content for name, content in TWO.items() if content is not None}
    status = (out / "a" / "deep" / "file").stat()
    assert status.st_mode & 0o7133 == 0
    assert status.st_uid == os.geteuid()
    assert sorted(os.listdir(out)) == ["a", "b"]


def make_file(path: Path) -> None:
    path.write_bytes(b"mine")


@pytest.mark.parametrize("make", [Path.mkdir, make_file, lambda path: path.symlink_to("nowhere")])
def test_what_is_there_stays(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "b")
    with pytest.raises(OutputExistsError, match="exists already"):
        unpack(packed(TWO), str(tmp_path))
    assert os.listdir(tmp_path) == ["b"]


@pytest.mark.parametrize("name", ["../a/file", "/a/file", "a/../../file", "a//file", "./a/file", "file"])
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="a member"):
        unpack(packed({"a/file": b"1", name: b"2"}), str(tmp_path / "out"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_special_files_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(FormatError, match="neither a directory nor a file"):
        unpack(packed({"a/file": b""}, kind), str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_when_the_second_cannot_appear_the_first_goes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = disk.rename

    def failing(source: str, target: str) -> None:
        if target == str(tmp_path / "b"):
            raise OSError(28, "No space left on device", target)
        rename(source, target)

    monkeypatch.setattr(disk, "rename", failing)
    with pytest.raises(OSError, match="No space"):
        unpack(packed(TWO), str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_any_call_of_the_system_that_fails_leaves_nothing_or_all(tmp_path: Path) -> None:
    number, struck = 0, True
    whole = {name: content for name, content in TWO.items() if content is not None}
    while struck:
        number += 1
        place = tmp_path / str(number)
        place.mkdir()
        with FailingCall((str(place),), number, "EIO") as failing, contextlib.suppress(OSError):
            unpack(packed(TWO), str(place))
        struck = failing.struck
        shown = {name: content for name, content in tree(place).items() if not name.startswith(".mqindex-")}
        assert shown in ({}, whole), failing.calls
    assert number > 30


def test_a_directory_that_could_be_made_only_in_part_is_gone_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`new` stayed where `new/sample` was to be made and the name of `new` could not be brought to the disk."""

    def failing(path: str) -> None:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(disk, "sync_directory", failing)
    with pytest.raises(OSError, match="Input/output"):
        unpack(packed(TWO), str(tmp_path / "new" / "sample"))
    assert os.listdir(tmp_path) == []
