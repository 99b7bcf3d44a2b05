"""The storage of places travels once in a job, and nothing that comes back or is shown has its options."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex.engines.transport import outcome, results, run_packed
from mqindex.files.paths import join
from mqindex.files.places.place import Place, place_of
from mqindex.spark.options import given
from mqindex.spark.parcels import Parcels
from tests.support.elsewhere import Ways, memory

__all__ = ["memory"]  # a fixture

SECRET = "not-to-be-seen"


def test_options_are_packed_once(memory: Ways) -> None:
    places = [join(given(f"memory://{n % 2}", "store", {"key": SECRET}), str(n)) for n in range(100)]
    parcels = Parcels()
    items, stage = parcels.pack(places), parcels.pack(lambda path: path + ".done")
    carried = pickle.dumps(parcels)
    assert (items + stage).count(SECRET.encode()) == 0
    assert carried.count(SECRET.encode()) == 1  # of two roots, in one pickle
    there = pickle.loads(carried)
    done = outcome(lambda: run_packed(stage, items, there.unpack), there.pack, there.unpack)
    assert SECRET.encode() not in done
    (back,) = results({0: done}, parcels.unpack).values()
    assert back == [f"{place}.done" for place in places]
    assert [one.storage for one in back] == [place.storage for place in places]


def test_a_worker_has_one_client_for_all_tasks_of_a_job(memory: Ways) -> None:
    parcels = Parcels()
    data = parcels.pack(given("memory://one", "store", {"key": SECRET}))
    carried = pickle.dumps(parcels)
    first, second = (pickle.loads(carried).unpack(data) for _ in range(2))
    assert first.storage is second.storage


def test_an_error_and_a_storage_of_the_worker_s_own_come_back(memory: Ways) -> None:
    parcels = Parcels()
    place = given("memory://one", "store", {"key": SECRET})
    work = parcels.pack(place)
    there = pickle.loads(pickle.dumps(parcels))

    def fail() -> Any:
        raise FileNotFoundError(2, "no such file", there.unpack(work))

    with pytest.raises(FileNotFoundError) as gone:
        results({0: outcome(fail, there.pack, there.unpack)}, parcels.unpack)
    assert isinstance(gone.value.filename, Place)
    assert SECRET not in f"{gone.value} {gone.value.__cause__}"
    own = outcome(lambda: place_of("memory://two"), there.pack, there.unpack)
    assert results({0: own}, parcels.unpack) == {0: "memory://two"}
