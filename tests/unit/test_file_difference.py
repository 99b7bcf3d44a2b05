"""What a failed comparison of files says in a log."""

from __future__ import annotations

import pytest

from tests.support.file_difference import difference


def test_files_that_differ_are_named_with_the_first_byte() -> None:
    left = {"same": bytes(9000), "cut": bytes(9000), "gone": b"12"}
    right = {"same": bytes(9000), "cut": bytes(5000) + b"x", "new": b""}
    assert difference(left, right) == [
        "3 of 4 differ",
        f"cut: 9000 and 5001 bytes, from byte 5000 on {bytes(16).hex()} and 78",
        "gone: only on the left, 2 bytes",
        "new: only on the right, 0 bytes",
    ]


@pytest.mark.parametrize(
    ("left", "right"), [(b"a", b"b"), ({}, {}), ({"a": 1}, bytes(9000)), (bytes(9000), bytes(9000))]
)
def test_what_pytest_shows_well_is_left_to_it(left: object, right: object) -> None:
    assert difference(left, right) is None
