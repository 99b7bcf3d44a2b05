"""A file that a user named: it appears whole, and replaces nothing that nobody asked to replace."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mqindex.errors import OutputExistsError
from mqindex.files import disk
from mqindex.files.results.whole_file import appearing, have_file, publish_content, replace_content, require_new_file


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    sync = disk.sync

    def slow(fd: int) -> None:
        sync(fd)
        path.write_bytes(b"another's")

    monkeypatch.setattr(disk, "sync", slow)
    with pytest.raises(OutputExistsError, match="exists"):
        publish_content(str(path), b"ours", overwrite=False)
    assert path.read_bytes() == b"another's"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_is_whole_and_alone(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr(disk, "link", lambda source, target: False)
    publish_content(str(tmp_path / "page.html"), b"ours", overwrite=False)
    assert (tmp_path / "page.html").read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["page.html"]


def test_what_is_to_be_replaced_is(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"old")
    publish_content(str(path), b"new", overwrite=True)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("target", ["page.html", "nowhere", "/dev/null", "."])
def test_a_link_is_not_replaced(target: str, overwrite: bool, tmp_path: Path) -> None:
    """`--out /dev/stdout --force >page.html` let a file take the place of /dev/stdout, for every program."""
    (tmp_path / "page.html").write_bytes(b"old")
    (tmp_path / "link").symlink_to(target)
    for call in (
        lambda path: publish_content(path, b"new", overwrite=overwrite),
        lambda path: require_new_file(path, overwrite=overwrite),
    ):
        with pytest.raises(OutputExistsError, match=r"no file: .*link: got a link; name the file that it leads to"):
            call(str(tmp_path / "link"))
    assert os.readlink(tmp_path / "link") == target
    assert (tmp_path / "page.html").read_bytes() == b"old"


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_new_file_has_the_rights_that_the_umask_gives(overwrite: bool, tmp_path: Path) -> None:
    """A body in a directory that all may write to could be written, and read, by all."""
    tmp_path.chmod(0o2777)
    before = os.umask(0o077)
    try:
        publish_content(str(tmp_path / "body"), b"ours", overwrite=overwrite)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "body").stat().st_mode) == 0o600
    (tmp_path / "body").chmod(0o640)
    publish_content(str(tmp_path / "body"), b"anew", overwrite=True)
    assert stat.S_IMODE((tmp_path / "body").stat().st_mode) == 0o640


def test_a_file_takes_no_setgid_from_its_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o2775)
    have_file(str(tmp_path / "lock"), b"lock")
    replace_content(str(tmp_path / "follow.json"), b"{}")
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o664}


@pytest.mark.parametrize("letter", ["x", "ü", "\udcff"])
def test_every_name_that_the_file_system_has_is_possible(letter: str, tmp_path: Path) -> None:
    """With 243 bytes and more it was "File name too long", of a temporary name, when all was done."""
    path = str(tmp_path / (letter * (255 // len(os.fsencode(letter)))))
    publish_content(path, b"ours", overwrite=False)
    publish_content(path, b"again", overwrite=True)
    replace_content(path, b"replaced")
    assert Path(path).read_bytes() == b"replaced"
    with appearing(path, like=str(tmp_path), aside=str(tmp_path)) as fd:
        disk.write_all(fd, b"appeared")
    assert Path(path).read_bytes() == b"appeared"
    assert len(os.listdir(tmp_path)) == 1
