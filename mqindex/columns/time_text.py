"""Times as people write them: milliseconds, dates with a zone, and how long ago."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Final

from mqindex._native.numbers import milliseconds as of_time

_TAKEN = "ms since the epoch, 2026-11-21T08:00+08:00 (without a zone: UTC), now, or -1h, -2d30m (before now)"
_UNITS: Final = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}  # in this order, each once
_NUMBER = re.compile(r"[+-]?[0-9]+")
_SPAN = re.compile("([+-])(?=[0-9])" + "".join(f"(?:([0-9]+){unit})?" for unit in _UNITS))
_NO_SIGN = re.compile(f"(?:[0-9]+[{''.join(_UNITS)}])+")
_COMPACT_DATE = re.compile("(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{6})?")


def time_of_text(text: str, *, now: int | None = None) -> int:
    """Milliseconds since the epoch: written as such, as ISO 8601, or as a span before (`-`) or after (`+`) now.

    `now`: ms since the epoch; None: that of this call. An ambiguous text is a ValueError.

    >>> time_of_text("1700000000123"), time_of_text("2023-11-14T22:13:20.123Z")
    (1700000000123, 1700000000123)
    >>> time_of_text("2026-11-21T08:00+08:00") == time_of_text("2026-11-21")
    True
    >>> time_of_text("-1d2h", now=93_600_000), time_of_text("now", now=5)
    (0, 5)
    """
    if _COMPACT_DATE.fullmatch(text):
        raise ValueError(f"{text!r} may be a date or ms since the epoch: expected a date with dashes, as 2026-11-21")
    if _NO_SIGN.fullmatch(text):
        raise ValueError(f"{text!r} may be before or after now: expected -{text} or +{text}")
    if _NUMBER.fullmatch(text):
        return _in_64_bits(_count(text))
    now = time.time_ns() // 1_000_000 if now is None else now
    if text == "now":
        return now
    if span := _SPAN.fullmatch(text):
        counts = [_count(digits or "0") for digits in span.groups()[1:]]
        length = sum(count * unit for count, unit in zip(counts, _UNITS.values(), strict=True))
        return _in_64_bits(now + (length if span[1] == "+" else -length))
    return _of_date(text)


def _of_date(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r}: expected {_TAKEN}") from None
    return of_time("TIME", moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def _count(digits: str) -> int:
    return int(digits) if len(digits) < 40 else 1 << 64  # Python has a limit of its own, and an error for it


def _in_64_bits(moment: int) -> int:
    if not -(2**63) <= moment < 2**63:
        raise ValueError("expected 64 bits, got more")
    return moment
