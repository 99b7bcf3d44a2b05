"""Look-ups in index files on real servers give what the files here give."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mqindex.files.places.place import place_of
from mqindex.rocketmq import IndexFile, IndexService, optimize
from tests.peer.places.servers import CREDENTIAL, S3, Server
from tests.unit.test_remote_index import ENTRIES, KEYS, SLOTS, make

GIVEN = {"hash_slot_num": SLOTS, "index_num": ENTRIES}


@pytest.mark.parametrize("kind", ["ordinary", "optimised"])
def test_answers_are_those_of_the_files_here(server: Server, tmp_path: Path, kind: str) -> None:
    index = make(tmp_path / "store")
    if kind == "optimised":
        optimize(index, tmp_path / "out", **GIVEN)
        index = tmp_path / "out" / "index"
    url = f"{server.upload(index.parent, kind)}/index"
    with (
        IndexService.open(index, **GIVEN) as here,
        IndexService.open(url, storage_options=server.options, **GIVEN) as there,
    ):
        assert there.query_offsets("T", KEYS).to_pylist() == here.query_offsets("T", KEYS).to_pylist()
        name = Path(there.files[0].path).name
    with IndexFile.open(f"{url}/{name}", storage_options=server.options, **GIVEN) as file:
        assert len(file.entries()["key_hash"]) == ENTRIES - 1


def test_what_is_not_there_is_said(server: Server) -> None:
    for call in (IndexService.open, IndexFile.open):
        with pytest.raises(FileNotFoundError) as gone:
            call(f"{server.url}/nothing/1", storage_options=server.options)
        assert gone.value.filename == f"{server.url}/nothing/1"


def test_a_place_is_pickled_with_its_options_and_shows_none(server: Server) -> None:
    server.put("a/file", b"0123456789")
    place = place_of(f"{server.url}/a", server.options)
    again = pickle.loads(pickle.dumps(place))
    assert again.entries()["file"].size == (again / "file").stat().size == 10
    assert bytes((again / "file").read(2, 5)) == b"234"
    assert again.parent.entries()["a"].directory
    shown = f"{place} {place!r} {place.storage!r}"
    assert CREDENTIAL not in shown


def test_wrong_credentials_are_one_clear_error(tmp_path: Path) -> None:
    server = S3(tmp_path)
    try:
        wrong = {**server.options, "secret_access_key": "guessed"}
        with pytest.raises(PermissionError) as refused:
            place_of(f"{server.url}/a", wrong).stat()
        assert "guessed" not in str(refused.value)
        with pytest.raises(FileNotFoundError, match="no such bucket or container: 's3://other/a'"):
            place_of("s3://other/a", server.options).stat()
    finally:
        server.close()
