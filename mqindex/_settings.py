"""The settings of a broker that are read here, as data: each is one row, and whatever depends on it asks the row.

A broker's package has the table of its settings, `settings.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Setting(NamedTuple, Generic[T]):
    """A setting, by its name in the newest brokers.

    parser : what makes a value of a text, or raises; it is called with the name too. default : what a broker has that
    is told nothing, as the parser takes it. decides : what depends on it; of a length, whose. unit : of a number.

    least : the smallest number that is taken. multiple : of what a broker rounds it up to. reported : its name in
    reports. former : its name in the brokers of brokers.MAPED_NAMES.

    argument : its name as an argument, and of the shell's option: hash_slot_num, --hash-slot-num; "" if it has none.
    shown : what shows it, where neither says it.
    """

    name: str
    parser: Callable[..., T]
    default: Any
    unit: str
    decides: str
    least: int | None = None
    multiple: int = 1
    reported: str = ""
    former: str | None = None
    argument: str = ""
    shown: str = ""

    def parsed(self, value: Any) -> T:
        """A value; `ValueError`, naming the setting: it is none."""
        return self._parsed(self.name, value)

    def given(self, value: Any) -> T:
        """The value of its argument; `ValueError`, naming that: it is none."""
        return self._parsed(self.argument, value)

    def _parsed(self, name: str, value: Any) -> T:
        return self.parser(name, value) if self.least is None else self.parser(name, value, self.least)

    def help(self, broker: str, more: str = "") -> str:
        """What the shell says of its option. `more`: what else there is to say of it.

        >>> Setting("maxIndexNum", int, 20, "entries", "the geometry", shown="as the files show it").help("RocketMQ")
        "RocketMQ's maxIndexNum, in entries: the geometry.  [default: as the files show it, else 20]"
        """
        unit = f", in {self.unit}" if self.unit else ""
        default = ", else ".join(filter(None, (self.shown, str(self.default))))
        return f"{broker}'s {self.name}{unit}: {self.decides}{more}.  [default: {default}]"
