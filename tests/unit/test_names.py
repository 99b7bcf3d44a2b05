"""Names of new index files: they sort into place, whatever the clock and the neighbours are."""

from __future__ import annotations

import pytest

from mqindex.errors import FileStateError
from mqindex.rocketmq.index.names import names_between, next_name


def in_order(previous, names, following):
    line = [name for name in (previous, *names, following) if name is not None]
    return line == sorted(line) and len(set(line)) == len(line)


@pytest.mark.parametrize("times", [[], [0], [1_700_000_000_000], [5, 5, 5], [3, 2, 1], [-(2**63), 2**63 - 1]])
@pytest.mark.parametrize("previous", [None, "20231114221320000", "0", "00000000000000001", "20231114221320000123"])
@pytest.mark.parametrize("following", [None, "30000101000000000"])
def test_names_are_distinct_and_sort_between_their_neighbours(previous, following, times):
    names = names_between(previous, following, times)
    assert len(names) == len(times)
    assert all(len(name) == 17 and name.isascii() and name.isdecimal() for name in names)
    assert in_order(previous, names, following)


def test_a_time_behind_the_following_file_still_sorts_before_it():
    names = names_between("20231114221320000", "20231114221320009", [40_000_000_000_000] * 3)
    assert names == ["20231114221320006", "20231114221320007", "20231114221320008"]


def test_no_room_between_two_neighbours_is_refused():
    with pytest.raises(FileStateError, match="no free name"):
        names_between("20231114221320000", "20231114221320002", [0, 0])


def test_behind_a_name_in_other_digits_there_is_no_room():
    with pytest.raises(FileStateError, match="no free name"):
        names_between("٢٠٢٣", None, [0])


def test_two_files_of_one_millisecond_get_two_names():
    first = next_name(None)
    assert next_name(first) > first
