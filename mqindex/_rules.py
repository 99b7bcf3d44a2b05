"""The rules of a broker that differ by version, as data: each is one row, and every command asks the same row.

A broker's package has the table of its rules, `brokers.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What the brokers of some versions do.

    `since`: the first release that does it, None: every one; `until`: the first that no longer does, None: none yet.
    `source`: the class and method that show it.
    """

    name: str
    since: str | None
    until: str | None
    source: str

    @property
    def thresholds(self) -> tuple[str, ...]:
        """The releases at which it changes."""
        return tuple(one for one in (self.since, self.until) if one is not None)

    @property
    def brokers(self) -> str:
        """Those that do it, as a sentence names them.

        >>> Rule("waits", "4.5", None, "").brokers, Rule("waits", "4.5", "5.0", "").brokers
        ('from 4.5 on', 'from 4.5 on, before 5.0')
        """
        begin = [] if self.since is None else [f"from {self.since} on"]
        return ", ".join([*begin, *([] if self.until is None else [f"before {self.until}"])]) or "every"

    def and_also(self, other: Rule) -> Rule:
        """What those do that do both; nobody does where it begins after its end.

        >>> Rule("waits", "4.5", None, "").and_also(Rule("counts", None, "5.0", "")).brokers
        'from 4.5 on, before 5.0'
        """
        since = max(self.since, other.since, key=lambda one: numbers_of(one or "0"))
        until = min(self.until, other.until, key=lambda one: (one is None, numbers_of(one or "0")))
        return Rule(self.name, since, until, self.source)


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker, as far as its version is known: it is in [least, below). `below` None: it may be any newer one.

    >>> waits = Rule("waits", "4.5", "5.0", "DefaultMessageStore.start")
    >>> Broker.of("4.9.3").does(waits), Broker.of("5.1").does(waits), Broker().does(waits)
    (True, False, None)
    >>> Broker((5, 4)).does(waits), Broker((4, 5), (5,)).does(waits)
    (False, True)
    """

    least: Version = ()
    below: Version | None = None

    @classmethod
    def of(cls, version: str) -> Broker:
        """The one of a known version."""
        least = numbers_of(version)
        return cls(least, (*least, 0))

    def does(self, rule: Rule) -> bool | None:
        """Whether it does what the rule says; None: that depends on its version, which is not known."""
        since = () if rule.since is None else numbers_of(rule.since)
        until = None if rule.until is None else numbers_of(rule.until)
        if self._is_before(since) or (until is not None and self.least >= until):
            return False
        known = self.least >= since and (until is None or self._is_before(until))
        return True if known else None

    def split(self, *rules: Rule) -> tuple[Broker, ...]:
        """It in parts, the oldest first: of each it is known whether it does what the rules say.

        >>> Broker((5,)).split(Rule("waits", "4.5", "5.2", ""), Rule("counts", "5.4", None, ""))
        (Broker(least=(5,), below=(5, 2)), Broker(least=(5, 2), below=(5, 4)), Broker(least=(5, 4), below=None))
        """
        changes = sorted({numbers_of(release) for rule in rules for release in rule.thresholds})
        inside = [at for at in changes if self.least < at and not self._is_before(at)]
        return tuple(Broker(*part) for part in zip([self.least, *inside], [*inside, self.below], strict=True))

    def _is_before(self, version: Version) -> bool:
        """Whether every version that it may have is before that one."""
        return self.below is not None and self.below <= (*version, 0) and self.least < version


def numbers_of(version: str) -> Version:
    """The numbers of a release, without zeros at the end, so that 5.0 and 5.0.0 are the same one.

    >>> numbers_of("5.0.0"), numbers_of("v4.9.3-SNAPSHOT")
    ((5,), (4, 9, 3))
    """
    numbers = [int(part) for part in version.lstrip("vV").partition("-")[0].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
