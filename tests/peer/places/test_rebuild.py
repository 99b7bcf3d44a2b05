"""Stores on real servers: rebuilt from there and to there, byte for byte as here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqindex.errors import OutputExistsError
from mqindex.files.places.place import place_of
from mqindex.rocketmq import IndexService, optimize, rebuild
from tests.peer.places.conftest import of_s3
from tests.peer.places.servers import Server
from tests.support.golden import case
from tests.support.nightly import some


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# Which files there are decides nothing on a server: `tests/golden/test_elsewhere.py` has all stores in every run.
STORES = some(["basic-493", "ipv6-batch-ext-493", "medium-493"], lambda name: name == "basic-493")


@pytest.mark.parametrize("name", STORES)
def test_a_store_is_rebuilt_beside_itself(server: Server, name: str, tmp_path: Path) -> None:
    root = case(name).unpack(tmp_path)
    here = rebuild(root, tmp_path / "here")
    url, out = server.upload(root, name), f"{server.url}/results/{name}"
    there = rebuild(url, out, storage_options=server.options)
    found = server.files(f"results/{name}")
    manifest = found.pop("mqindex.json", None)
    assert found == files_below(tmp_path / "here")
    assert (there.messages, there.entries, there.units) == (here.messages, here.entries, here.units)
    assert sorted(there.out_files) == sorted(f"{out}/{name}" for name in found)
    assert (manifest is None) == url.startswith("hdfs")
    if manifest is not None:
        assert {one["name"] for one in json.loads(manifest)["files"]} == set(found)
    with pytest.raises(OutputExistsError):
        rebuild(url, out, storage_options=server.options)
    assert not [name for name in place_of(f"{server.url}/results", server.options).entries() if "mqindex-" in name]


@of_s3
def test_several_stores_are_rebuilt_at_once(server: Server, tmp_path: Path) -> None:
    """One of them is not there: the others have their results, each whole."""
    roots = {name: case(name).unpack(tmp_path) for name in ("basic-493", "ipv6-batch-ext-493")}
    (tmp_path / "here").mkdir()
    for name, root in roots.items():
        rebuild(root, tmp_path / "here" / name)
    urls = [server.upload(root, f"fleet/{name}/store") for name, root in roots.items()]
    out = f"{server.url}/fleet/results"
    report = rebuild([*urls, f"{server.url}/fleet/none/store"], out, storage_options=server.options)
    found = {name: data for name, data in server.files("fleet/results").items() if not name.endswith("mqindex.json")}
    assert found == files_below(tmp_path / "here")
    assert [one.ok for one in report.stores.values()] == [True, True, False]
    assert list(report.stores) == [*roots, "none"]
    assert set(place_of(out, server.options).entries()) == set(roots)  # no scratch


def test_a_result_is_looked_up_where_it_is(server: Server, tmp_path: Path) -> None:
    root, out = case("basic-493").unpack(tmp_path), f"{server.url}/results/looked-up"
    rebuild(root, tmp_path / "here")
    report = rebuild(root, out, storage_options=server.options)
    slots, entries = report.settings["geometry"].value
    given = {"hash_slot_num": slots, "index_num": entries}
    keys = [f"k{n}" for n in range(200)]
    with (
        IndexService.open(tmp_path / "here" / "index", **given) as here,
        IndexService.open(f"{out}/index", storage_options=server.options, **given) as there,
    ):
        assert there.query_offsets("TopicTest", keys).to_pylist() == here.query_offsets("TopicTest", keys).to_pylist()


def test_an_index_is_optimized_there(server: Server, tmp_path: Path) -> None:
    root, (slots, entries) = case("medium-493").unpack(tmp_path), case("medium-493").geometry
    made = optimize(root, tmp_path / "here")
    url, out, given = server.upload(root, "to-optimize"), "results/cold", {"storage_options": server.options}
    report = optimize(url, f"{server.url}/{out}", **given)
    assert (report.files, report.entries) == (made.files, made.entries)
    found = server.files(out)
    assert ("mqindex.json" in found) == url.startswith("s3")
    found.pop("mqindex.json", None)
    assert found == files_below(tmp_path / "here")
    if url.startswith("hdfs"):
        again = optimize(f"{url}/index", f"{server.url}/{out}", overwrite=True, **given)
        assert again.backup is not None
        assert server.files(out) == found
    with (
        IndexService.open(root / "index", hash_slot_num=slots, index_num=entries) as here,
        IndexService.open(f"{server.url}/{out}/index", hash_slot_num=slots, index_num=entries, **given) as there,
    ):
        keys = [f"k{n}" for n in range(200)]
        assert there.query_offsets("TopicTest", keys).to_pylist() == here.query_offsets("TopicTest", keys).to_pylist()
    assert not [name for name in place_of(f"{server.url}/results", server.options).entries() if "mqindex-" in name]
