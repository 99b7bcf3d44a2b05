"""The parts of a store that can be built from its log."""

from __future__ import annotations

from collections.abc import Iterable

from mqindex.columns.limits import several_names

PARTS = ("index", "consumequeue")
"""What this version builds."""


def check_parts(parts: Iterable[str] | None) -> frozenset[str]:
    """The chosen parts; one that this version cannot build is refused."""
    wanted = frozenset(PARTS if parts is None else several_names("parts", parts))
    if not wanted or wanted - set(PARTS):
        got = ", ".join(sorted(wanted - set(PARTS))) or "none"
        raise ValueError(f"parts: expected some of {', '.join(PARTS)}, got {got}")
    return wanted
