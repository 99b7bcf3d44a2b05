"""Text and numbers as a page shows them. Text of files is hostile: made visible, cut, and shown with its length."""

from __future__ import annotations

from mqindex.wording.text import about_size, iso, printable

CUT = 100  # characters of a name
_SPANS = (("d", 86_400), ("h", 3_600), ("min", 60))


class Name(str):
    """A text that is visible and cut already, and says how long it was: it is not cut again."""

    __slots__ = ()


def visible(text: object, limit: int = CUT) -> str:
    r"""The text in one line, with control and formatting characters made visible; a long one is cut.

    >>> visible("a\u202e<b>\x00"), visible("x" * 10_000_000, 5)
    ('a\\u202e<b>\\x00', 'xxxxx… (10,000,000 characters)')
    """
    string = str(text)
    if len(string) <= limit:
        return printable(string)
    return f"{printable(string[:limit])}… ({count(len(string))} characters)"


def count(number: float) -> str:
    """A whole number with its thousands separated; a fraction with two digits.

    >>> count(1234567), count(0.5)
    ('1,234,567', '0.50')
    """
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}"


def size(number: float) -> str:
    """Bytes, as the shell prints them.

    >>> size(420_000_040)
    '400.5 MiB'
    """
    return about_size(number)


def rate(number: float) -> str:
    """Bytes a second.

    >>> rate(2_300_000_000)
    '2.1 GiB/s'
    """
    return f"{size(number)}/s"


def share(fraction: float) -> str:
    """A part of a whole; what is not quite all, or not quite nothing, never looks like it.

    >>> share(0.5), share(0.9999), share(0.0001), share(1)
    ('50.0 %', '> 99.9 %', '< 0.1 %', '100 %')
    """
    if fraction in (0, 1):
        return f"{fraction:.0%}".replace("%", " %")
    if 0 < fraction < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if 0.999 < fraction < 1 else f"{100 * fraction:.1f} %"


def times(number: float) -> str:
    """How many times as much.

    >>> times(2.5)
    '2.5×'
    """
    return f"{number:.1f}×"  # noqa: RUF001


def days(number: float) -> str:
    """How many days something lasts.

    >>> days(1.25), days(43.5), days(10_000)
    ('1.2', '44', 'more than 10 years')
    """
    return "more than 10 years" if number > 3650 else f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def moment(ms: float) -> str:
    """A time in ms since the epoch, as the shell prints it.

    >>> moment(1700000000123)
    '2023-11-14T22:13:20.123Z'
    """
    return iso(int(ms))


def span(ms: float) -> str:
    """A length of time in ms, in its two largest units.

    >>> span(200), span(61_000), span(90_000_000), span(1500)
    ('200 ms', '1 min 1 s', '1 d 1 h', '1.5 s')
    """
    seconds = abs(ms) / 1000
    sign = "-" if ms < 0 else ""
    if seconds < 1:
        return f"{sign}{abs(ms):.0f} ms"
    if seconds < 60:
        return f"{sign}{seconds:.1f} s"
    parts, rest = [], round(seconds)
    for unit, length in (*_SPANS, ("s", 1)):
        if rest >= length:
            parts.append(f"{rest // length} {unit}")
        rest %= length
    return sign + " ".join(parts[:2])
