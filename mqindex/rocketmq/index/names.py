"""Names of index files: 17 digits, the local time of creation, in whose order the broker loads them.

Only the order matters to a broker. A file that a tool creates is named by the time of its first message, as if the
broker had created it then, moved as far as its neighbours need.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from mqindex.errors import FileStateError
from mqindex.rocketmq.kinds import INDEX_DIGITS

_END = 100_000_000_000_000_000


def next_name(previous: str | None) -> str:
    """The name of a file that is created now, after `previous`."""
    return names_between(previous, None, [int(time.time() * 1000)])[0]


def names_between(previous: str | None, following: str | None, times: Sequence[int]) -> list[str]:
    """Distinct, ascending names that sort between two neighbours; `times`: ms since the epoch, one for each name.

    >>> names_between("20240101000000007", "20240101000000010", [0, 0])
    ['20240101000000008', '20240101000000009']
    """
    first, end = _lowest(previous), _end(following)
    names, low = [], first
    for moment in times:
        names.append(max(low, _stamp(moment)))
        low = names[-1] + 1
    if low > end:  # the times are not between the neighbours: take the last free numbers
        names = list(range(end - len(times), end))
    if names and names[0] < first:
        raise FileStateError(
            "no free name for a new index file between its neighbours",
            expected=f"{len(times)} between {previous} and {following}",
            got=max(end - first, 0),
            hint="rebuild the whole index elsewhere and exchange the directories",
        )
    return [f"{name:0{INDEX_DIGITS}d}" for name in names]


def _lowest(previous: str | None) -> int:
    """The first number whose 17 digits sort after `previous`."""
    if previous is None:
        return 0
    if not previous.isascii():
        return _END  # the digits of other scripts sort after all of ours
    digits = previous.ljust(INDEX_DIGITS, "0")[:INDEX_DIGITS]
    return int(digits) + (digits <= previous)


def _end(following: str | None) -> int:
    """The first number whose 17 digits do not sort before `following`."""
    if following is None or not following.isascii():
        return _END
    return int(following.ljust(INDEX_DIGITS, "0")[:INDEX_DIGITS])


def _stamp(moment: int) -> int:
    try:
        local = datetime.fromtimestamp(moment / 1000)
    except (ValueError, OverflowError, OSError):
        return 0
    return int(local.strftime("%Y%m%d%H%M%S")) * 1000 + local.microsecond // 1000
