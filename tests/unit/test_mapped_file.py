"""`MappedFile.create`: all or nothing, and never a file that is shorter than asked for."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from mqindex.errors import TruncatedFileError
from mqindex.files import tmpfile
from mqindex.files.reading import mapped_file
from mqindex.files.reading.mapped_file import MappedFile

SIZE = 3 * 4096 + 5


@pytest.fixture(params=["nameless", "in place"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the file comes about: where the system can make files without a name, and where it cannot."""
    if request.param == "in place":
        monkeypatch.setattr(tmpfile, "_NAMELESS", None)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sparse", [False, True])
def test_a_new_file_has_its_length_and_what_is_written_to_it(tmp_path: Path, sparse: bool) -> None:
    path = tmp_path / "file"
    with MappedFile.create(path, SIZE, sparse=sparse) as file:
        assert (file.path, file.size, file.writable) == (str(path), SIZE, True)
        file.map[5:8] = b"abc"
    assert path.read_bytes() == bytes(5) + b"abc" + bytes(SIZE - 8)
    assert path.stat().st_mode & 0o777 == tmp_path.stat().st_mode & 0o666
    if not sparse:
        assert path.stat().st_blocks * 512 >= SIZE


@pytest.mark.usefixtures("way")
def test_a_file_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MappedFile.create("file", SIZE).close()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("way")
def test_what_stands_there_stays(tmp_path: Path) -> None:
    for name, make in (("file", Path.touch), ("dangling", lambda path: path.symlink_to("nowhere"))):
        path = tmp_path / name
        make(path)
        with pytest.raises(FileExistsError) as caught:
            MappedFile.create(path, SIZE)
        assert caught.value.filename == str(path)
    assert (tmp_path / "file").stat().st_size == 0


def test_what_appears_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    real = mapped_file.reserve

    def reserve(fd: int, size: int, *, sparse: bool = False) -> None:
        path.write_bytes(b"another one's")
        real(fd, size, sparse=sparse)

    monkeypatch.setattr(mapped_file, "reserve", reserve)
    with pytest.raises(FileExistsError) as caught:
        MappedFile.create(path, SIZE)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"another one's"


@pytest.mark.usefixtures("way")
def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(mapped_file, "reserve", full)
    with pytest.raises(OSError, match="No space left"):
        MappedFile.create(tmp_path / "file", SIZE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("way")
def test_no_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        MappedFile.create(tmp_path / "no" / "file", SIZE)
    assert caught.value.filename.startswith(str(tmp_path / "no"))


def test_without_links_to_open_files_it_is_made_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(os, "link", link)
    MappedFile.create(tmp_path / "file", SIZE).close()
    assert (tmp_path / "file").stat().st_size == SIZE


@pytest.mark.skipif(tmpfile._NAMELESS is None, reason="no files without a name on this system")
def test_nobody_meets_a_file_that_is_shorter(tmp_path: Path) -> None:
    met: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for name in os.listdir(tmp_path):
                with suppress(FileNotFoundError):
                    met.append((tmp_path / name).stat().st_size)

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(300):
        MappedFile.create(tmp_path / f"{number}", SIZE).close()
        if number > 2:
            os.unlink(tmp_path / f"{number - 3}")
    done.set()
    looking.join()
    assert set(met) == {SIZE}


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    for writable in (False, True):
        with pytest.raises(IsADirectoryError, match=tmp_path.name):
            MappedFile.open(tmp_path, writable=writable)


def test_a_fifo_is_an_empty_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(TruncatedFileError, match="empty"):
        MappedFile.open(tmp_path / "fifo")


def test_a_file_that_is_shorter_by_now_is_said_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    mapped = MappedFile.open(path)
    mapped.require_whole()
    os.truncate(path, SIZE - 1)
    with pytest.raises(TruncatedFileError, match="cut while it was open"):
        mapped.require_whole()
    mapped.close()
    mapped.require_whole()  # what reads a closed one says so


def test_what_will_be_read_is_asked_for_in_pieces_that_the_system_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads no more than its read-ahead for one advice: of a cold file's gigabyte the rest came page by page."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(MappedFile, "_advise", lambda file, advice, start, length: asked.append((start, length)))
    with MappedFile.create(tmp_path / "file", 1 << 20, sparse=True) as file:
        file.will_need(5000, 700_001)
        file.will_need(8192, 8192)
    assert asked[0][0] == 4096
    assert all(0 < length <= 128 << 10 and start % 4096 == 0 for start, length in asked)
    assert [start + length for start, length in asked] == [*(start for start, _ in asked[1:]), 700_001]


@pytest.mark.parametrize("writable", [False, True])
def test_a_file_that_is_emptied_while_it_is_opened_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(5000))
    seen = os.fstat

    def then_cut(fd: int) -> os.stat_result:
        status = seen(fd)
        os.truncate(path, 0)
        return status

    monkeypatch.setattr(mapped_file.os, "fstat", then_cut)
    with pytest.raises(TruncatedFileError, match="the file is empty"):
        MappedFile.open(path, writable=writable)
