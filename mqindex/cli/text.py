"""What people write on a command line."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["milliseconds"]


def milliseconds(text: str) -> int:
    """Milliseconds since the epoch, written as such or as ISO 8601.

    >>> milliseconds("1700000000123"), milliseconds("2023-11-14T22:13:20.123Z")
    (1700000000123, 1700000000123)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        expected = "expected ms since the epoch, or a time such as 2023-11-14T22:13:20.123Z"
        raise ValueError(f"{text!r}: {expected}") from None
    from mqindex._native.numbers import milliseconds as of_time

    return of_time("TIME", moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
