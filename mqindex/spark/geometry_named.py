"""Errors about a geometry, in the words of who gave it or may give it: a hint of the core names its own arguments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mqindex.errors import GeometryError
from mqindex.rocketmq.layout import HASH_SLOT_NUM, INDEX_NUM

_OPTIONS = {"hash_slot_num": "hashSlotNum", "index_num": "indexNum"}
_BROKERS = f"those of the broker: by default {HASH_SLOT_NUM} and {INDEX_NUM}"
BY_OPTIONS = f"the options {' and '.join(_OPTIONS.values())} are {_BROKERS}"
BY_ARGUMENTS = f"the arguments {' and '.join(_OPTIONS)} are {_BROKERS}"
BY_SQL = (
    "in SQL it takes none: mqindex.spark.select_phy_offset, a column function that spark.udf.register takes, has the "
    f"arguments {' and '.join(_OPTIONS)}, {_BROKERS}"
)


@contextmanager
def geometry_named(how: str) -> Iterator[None]:
    """Give a `GeometryError` of the block the hint `how`."""
    try:
        yield
    except GeometryError as error:
        error.hint = how
        if how == BY_OPTIONS:
            error.what, error.expected, error.got = map(_in_options, (error.what, error.expected, error.got))
        raise


def _in_options(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    for argument, option in _OPTIONS.items():
        text = text.replace(argument, option)
    return text
