"""How far the entries of an index file lie in the order of their slots, as `optimize` writes them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Order"]


class Order(NamedTuple):
    """The entries 1 .. `entries` are in the order of their slots, each linked to its neighbour of the same slot.

    `moved`: no broker wrote them so, their offsets go down somewhere. `first_phy_offset`, `last_phy_offset`: the
    smallest and the greatest of them.
    """

    entries: int
    moved: bool
    first_phy_offset: int
    last_phy_offset: int
