"""What a path is, from its content and its place, for both brokers."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

import click

from mqindex.cli.kafka import kinds as kafka_kinds
from mqindex.cli.rocketmq import kinds as rocketmq_kinds
from mqindex.cli.rocketmq.kinds import STORE
from mqindex.cli.trouble import Trouble
from mqindex.files import disk
from mqindex.files.paths import absolute, parent_of, scan, status_of
from mqindex.files.places.place import Place
from mqindex.kafka.kinds import partition_name
from mqindex.tables.kinds import kind_of

if TYPE_CHECKING:
    from mqindex.cli.options import BrokerOptions

KINDS: Final = {**rocketmq_kinds.KINDS, **kafka_kinds.KINDS}
_FILES = rocketmq_kinds.FILES | kafka_kinds.FILES
_MOST_NAMED, _KIND = 4, "; --kind says what it is"  # kinds in one sentence


def require_kind(path: str, forced: str | None, *expected: str) -> str:
    """The kind of `path`, which must be one of `expected`; else a sentence that names both."""
    _require_there(path, "file or directory")
    kind = forced or kind_of(path)
    if kind is None:
        raise Trouble(_unknown(path, expected))
    if kind not in expected:
        kinds = kafka_kinds.KINDS if kind in kafka_kinds.KINDS else rocketmq_kinds.KINDS
        own = tuple(one for one in expected if one in kinds) or expected
        raise Trouble(f"{path} is {KINDS[kind]}: expected {_either(own)}{_hint(path, own)}")
    if disk.is_directory(path) == (kind in _FILES):
        raise Trouble(f"{path} is {'a directory' if disk.is_directory(path) else 'a file'}: expected {KINDS[kind]}")
    return kind


def require_home(path: str, forced: str | None, *expected: str, options: BrokerOptions | None = None) -> str:
    """As `require_kind`, but also a directory with the remains of a store, by its content or by the options.

    options : the command's, where it takes what Kafka has too.
    """
    _require_there(path, "file or directory" if _FILES.intersection(expected) else "directory")
    if forced is None and disk.is_directory(path) and kind_of(path) is None and _may_be_store(path, options):
        return STORE
    return require_kind(path, forced, *expected)


def _may_be_store(path: str, options: BrokerOptions | None) -> bool:
    from mqindex.rocketmq.kinds import is_left_of_store  # here: a command for Kafka does without

    return options is None or any(value is not None for value in options.rocketmq.values()) or is_left_of_store(path)


def require_store(path: str) -> None:
    """Raise unless `path` is a directory and does not look like something else than a store."""
    require_home(path, None, STORE)


def _require_there(path: str, what: str) -> None:
    """Raise unless `path` exists; `OSError`: that is not known, as below a directory that may not be searched."""
    try:
        mode = status_of(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if isinstance(path, Place):
            raise  # it may be the bucket that is not there
        raise Trouble(f"no such {what}: {path}") from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a FIFO would wait for its writer
        raise Trouble(f"{path} is neither a file nor a directory")


def _unknown(path: str, expected: tuple[str, ...]) -> str:
    """What is said of a path that is no kind: an empty directory is mostly where a volume is to be mounted."""
    below = sorted(entry.path for entry in scan(path)) if disk.is_directory(path) else None
    if below == []:
        return f"{path} is an empty directory; is its volume mounted?"
    for child in below or ():
        if disk.is_directory(child) and kind_of(child) in expected:
            return f"{path} is nothing that mqindex knows; did you mean {child}?"
    if below and partition_name(path) is not None:
        return f"{path} is named as a Kafka partition and has no segment; is its volume mounted?"
    return f"{path} is nothing that mqindex knows: expected {_either(expected)}{_KIND if _takes_kind() else ''}"


def _hint(path: str, expected: tuple[str, ...]) -> str:
    """The nearest directory above that would do: from a file of a consume queue to its store there are four."""
    above = absolute(path)
    for _ in range(4):
        above = parent_of(above)
        if kind_of(above) in expected:
            return f"; did you mean {above}?"
    return ""


def _takes_kind() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and any(option.name == "kind" for option in context.command.params)


def _either(kinds: tuple[str, ...]) -> str:
    if len(kinds) > _MOST_NAMED:
        context = click.get_current_context(silent=True)
        help_of = f"`{context.command_path if context else 'mqindex'} --help`"
        firsts = [next(filter(every.__contains__, kinds), None) for every in (rocketmq_kinds.KINDS, kafka_kinds.KINDS)]
        return f"{', '.join(KINDS[kind] for kind in firsts if kind)}, or another kind of those that {help_of} lists"
    words = [KINDS[kind] for kind in kinds]
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
