"""The rolling directory against its twin: random puts in bulk, every query single and in bulk, expiry, reopening."""

from __future__ import annotations

import itertools
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqindex.errors import ClosedFileError, ReadOnlyFileError
from mqindex.rocketmq import IndexFile, IndexService
from tests.reference.index_service import IndexService as Twin

pytestmark = pytest.mark.filterwarnings("ignore:begin .* is after end:UserWarning")  # the broker was asked so too

KEYS = ["Aa", "BB", "C", "消息", "😀", ""]
T0 = 1_700_000_000_000


@st.composite
def histories(draw):
    geometry = draw(st.sampled_from([(1, 2), (3, 4), (7, 20), (11, 9)]))
    n = draw(st.integers(0, 60))
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=n, max_size=n))
    steps = draw(st.lists(st.integers(-3000, 9000), min_size=n, max_size=n))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return geometry, keys, (T0 + np.cumsum([0, *steps])[:n]).tolist(), [0, *cuts, n]


@given(histories(), st.randoms(use_true_random=False))
def test_service_answers_as_the_broker_would(tmp_path_factory, history, rng: random.Random):
    (slots, entries), keys, times, cuts = history
    directory = tmp_path_factory.mktemp("service")
    twin = Twin(slots, entries)
    for number, key in enumerate(keys):
        twin.put(f"T#{key}", number * 100, times[number])
    with IndexService.open(directory, hash_slot_num=slots, index_num=entries, writable=True) as service:
        for start, stop in itertools.pairwise(cuts):
            phys = [number * 100 for number in range(start, stop)]
            assert service.build_index("T", keys[start:stop], phys, times[start:stop]) == stop - start
        check_queries(service, twin, rng)
        low = rng.randrange(0, max(len(keys) * 100, 1))
        assert len(service.delete_expired_file(low)) == twin.delete_expired(low)
        check_queries(service, twin, rng)
    with IndexService.open(directory, hash_slot_num=slots, index_num=entries) as service:
        check_queries(service, twin, rng)


def check_queries(service: IndexService, twin: Twin, rng: random.Random) -> None:
    assert len(service.files) == len(twin.files)
    for _ in range(8):
        begin, end = (rng.choice([0, T0 + rng.randrange(-5000, 300_000), 2**63 - 1]) for _ in range(2))
        max_num = rng.choice([0, 1, 3, 64])
        expected = [twin.query_offset("T", key, max_num, begin, end) for key in KEYS]
        got = [service.query_offset("T", key, max_num=max_num, begin=begin, end=end) for key in KEYS]
        assert [(one.phy_offsets.tolist(), *one[1:]) for one in got] == [tuple(one) for one in expected]
        many = service.query_offsets("T", KEYS, max_num=max_num, begin=begin, end=end)
        assert many.to_pylist() == [one.phy_offsets for one in expected]
        whole = service.query_offsets(None, [f"T#{key}" for key in KEYS], max_num=max_num, begin=begin, end=end)
        assert whole.to_pylist() == many.to_pylist()


def test_an_empty_directory_answers_with_nothing(tmp_path):
    with IndexService.open(tmp_path) as service:
        assert service.query_offset("T", "a").phy_offsets.tolist() == []
        assert service.query_offsets("T", ["a", "b"]).to_pylist() == [[], []]
        assert (service.hash_slot_num, service.index_num) == (5_000_000, 20_000_000)


def test_strangers_are_skipped_with_a_warning(tmp_path):
    with IndexService.open(tmp_path, hash_slot_num=3, index_num=4, writable=True) as service:
        service.build_index("T", ["a"], [7], [T0])
    (tmp_path / "README").write_text("not an index")
    with pytest.warns(UserWarning, match="README"), IndexService.open(tmp_path) as service:
        assert len(service.files) == 1


def test_names_in_other_digits_are_loaded(tmp_path):
    with IndexService.open(tmp_path, hash_slot_num=3, index_num=4, writable=True) as service:
        service.build_index("T", ["a"], [7], [T0])
        path = tmp_path / "x"
        (tmp_path / service.files[0].path).rename(tmp_path / "٢٠٢٣١١١٤٢٢١٣٢٠٠٠٠")
    assert not path.exists()
    with warnings.catch_warnings(), IndexService.open(tmp_path) as service:
        assert service.query_offset("T", "a").phy_offsets.tolist() == [7]


@pytest.mark.parametrize("bulk", [True, False])
def test_a_file_expires_under_a_query(bulk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended with ClosedFileError, where a broker's ends with what is left."""
    with IndexService.open(tmp_path, hash_slot_num=3, index_num=4, writable=True) as service:
        service.build_index("T", list("abcabc"), range(6), range(6))
        matches = IndexFile.is_time_matched

        def expire(file: IndexFile, *period: int) -> bool:
            service.delete_expired_file(1 << 40)
            return matches(file, *period)

        monkeypatch.setattr(IndexFile, "is_time_matched", expire)
        found = service.query_offsets("T", ["a"])[0] if bulk else service.query_offset("T", "a").phy_offsets
        assert found.tolist() == [3]


def test_a_file_expires_under_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended with ClosedFileError, and the files after the one that expired were not flushed."""
    with IndexService.open(tmp_path, hash_slot_num=3, index_num=4, writable=True) as service:
        service.build_index("T", list("abcabc"), range(6), range(6))
        flushed, flush = [], IndexFile.flush

        def expire(file: IndexFile) -> None:
            service.delete_expired_file(1 << 40)
            flush(file)
            flushed.append(file)

        monkeypatch.setattr(IndexFile, "flush", expire)
        service.flush()
        assert tuple(flushed) == service.files


def test_what_cannot_be_is_refused(tmp_path):
    with IndexService.open(tmp_path) as service:
        with pytest.raises(ReadOnlyFileError):
            service.build_index("T", ["a"], [0], [0])
        with pytest.raises(ReadOnlyFileError):
            service.delete_expired_file(1)
        with pytest.raises(ValueError, match="max_num"):
            service.query_offset("T", "a", max_num=-1)
    with pytest.raises(ClosedFileError):
        service.query_offset("T", "a")
    service.close()
    with (
        IndexService.open(tmp_path, hash_slot_num=3, index_num=4, writable=True) as service,
        pytest.raises(ValueError, match="expected one length"),
    ):
        service.build_index("T", ["a"], [0, 1], [0])
    with pytest.raises(FileNotFoundError):
        IndexService.open(tmp_path / "nowhere")
