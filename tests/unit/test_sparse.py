"""A file that is mostly a hole: what of it holds data, and what is said when others cut it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mqindex.errors import TruncatedFileError
from mqindex.files.reading.sparse import SparseFile


def test_data_end_and_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"data")
    os.truncate(path, 1 << 30)
    with SparseFile(path) as file:
        assert file.size == 1 << 30
        assert 4 <= file.data_end() <= 1 << 20
        assert (file.read(1, 6), file.read(3, 3)) == (b"ata\0\0", b"")
    file.close()


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    with SparseFile(path) as file:
        os.truncate(path, 10)
        with pytest.raises(TruncatedFileError) as caught:
            file.read(0, 100)
    assert (caught.value.path, caught.value.expected, caught.value.got) == (str(path), 100, 10)
