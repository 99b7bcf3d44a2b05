"""Texts of columns: words, and rows that are equal, against plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqindex.columns.columns import StringColumn
from mqindex.columns.texts import TextSet, equal_rows, text_column, words_of


def column(texts: list[bytes | None]) -> StringColumn:
    made = text_column(text or b"" for text in texts)
    return StringColumn(made.data, made.offsets, np.array([text is not None for text in texts], np.bool_))


@pytest.mark.parametrize("seed", range(100))
def test_words_are_what_is_between_single_spaces(seed: int) -> None:
    rng = random.Random(seed)
    texts = [rng.choice([None, b"", bytes(rng.choices(b"ab ", k=rng.randrange(8)))]) for _ in range(rng.randrange(8))]
    words, rows = words_of(column(texts))
    expected = [(row, word) for row, text in enumerate(texts) for word in (text or b"").split(b" ") if word]
    assert list(zip(rows.tolist(), words.to_pylist(), strict=True)) == expected
    for wanted in ([b" "], [b"a"], [b"ab", b""], [b"a b"], [b"x%d" % number for number in range(20)] + [b"b", b"  "]):
        among = [any(word in wanted for word in (text or b"").split(b" ") if word) for text in texts]
        assert TextSet(wanted).among_words(column(texts)).tolist() == among


@pytest.mark.parametrize("seed", range(50))
def test_rows_are_equal_where_their_bytes_are(seed: int) -> None:
    rng = random.Random(seed)
    pairs = [
        (bytes(rng.choices(b"ab", k=rng.randrange(4))), bytes(rng.choices(b"ab", k=rng.randrange(4))))
        for _ in range(20)
    ]
    first, second = (column([pair[side] for pair in pairs]) for side in (0, 1))
    assert equal_rows(first, second).tolist() == [one == other for one, other in pairs]
