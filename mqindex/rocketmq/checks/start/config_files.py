"""The JSON files of `<store>/config`: what a broker loads of each and of its `.bak`, and whether it starts with them.

A file without a byte, or none at all, is nothing to load. What cannot be taken makes a broker load the `.bak`; where
that cannot be taken either, it does not start; where there is none, it starts without. Of what is no object brokers
differ, as tried with 4.9.3 (fastjson 1.2.69, 1.2.76, 1.2.83) and 5.5.0 (fastjson 2, which is there since 5.4.0).

Source: RocketMQ 4.9.3 and 5.5.0 `ConfigManager.load`, `loadBak`, `BrokerController.initialize`, and `decode` of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

from mqindex._rules import Rule, numbers_of
from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.files.paths import base_name, join
from mqindex.files.places.place import require_answer
from mqindex.health import Text
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.brokers import CONFIGS_OF_5, EVERY, FASTJSON_2, GROUPS_NOT_BLANK, OFFSETS_NOT_BLANK
from mqindex.rocketmq.metadata.config_json import in_json, json_value, saved, tables_of
from mqindex.rocketmq.metadata.consumer_offsets import delay_table, lmq_offset_table, offset_table
from mqindex.rocketmq.metadata.topic_configs import topic_configs

TIMER_METRICS: Final = "timermetrics"


class _File(NamedTuple):
    """`since`: the first brokers that do not start if they cannot load it; None: all do.

    `read`: a `FormatError` of what no broker can take.
    """

    since: Rule | None
    read: Callable[[dict[str, Any]], object]
    blanks: tuple[Rule, ...] = (FASTJSON_2,)  # those that cannot take text without anything but blanks


_FILES: Final[Mapping[str, _File]] = {
    "consumerFilter.json": _File(EVERY, partial(tables_of, name="filterDataByTopic")),
    "consumerOffset.json": _File(EVERY, offset_table, blanks=(OFFSETS_NOT_BLANK,)),
    "consumerOrderInfo.json": _File(CONFIGS_OF_5, partial(tables_of, name="table")),
    "delayOffset.json": _File(EVERY, delay_table),
    "lmqConsumerOffset.json": _File(None, lmq_offset_table, blanks=(OFFSETS_NOT_BLANK,)),
    "messageRequestMode.json": _File(None, partial(tables_of, name="messageRequestModeMap")),
    "subscriptionGroup.json": _File(
        EVERY, partial(tables_of, name="subscriptionGroupTable"), blanks=(GROUPS_NOT_BLANK, FASTJSON_2)
    ),
    TIMER_METRICS: _File(CONFIGS_OF_5, partial(tables_of, name="timingCount")),
    "topicQueueMapping.json": _File(CONFIGS_OF_5, partial(tables_of, name="topicQueueMappingInfoMap")),
    "topics.json": _File(EVERY, topic_configs),
}
CONFIG_FILES: Final = tuple(name for name in _FILES if name != TIMER_METRICS)
"""What every broker loads that knows them; the metrics of timers only where these are on."""


class _Content(NamedTuple):
    """`problem` None: all is well. `refused`: the brokers that cannot take it, the oldest first."""

    problem: str | None = None
    refused: tuple[Rule, ...] = ()
    expected: object = "JSON"
    field: str | None = None
    loaded: bool = True  # False: there is nothing to load


def config_findings(path: str) -> Iterator[Finding]:
    """Whether brokers can take the file; where they cannot, whether they can its `.bak`."""
    main, backup = _contents(path)
    if main.problem is None or main.problem == backup.problem == "missing":
        return
    if main.loaded and EVERY not in main.refused:
        kind = catalogue.SIDE_FILE_WITHOUT_CONTENT
    elif not backup.loaded:
        kind = catalogue.SIDE_FILE_INVALID
    else:
        kind = catalogue.SIDE_FILE_HAS_BACKUP if backup.problem is None else catalogue.SIDE_FILES_INVALID
    said, start = backup.problem or f"{base_name(path)}.bak", _start(_refused(path, main, backup))
    taken = Rule("", main.refused[0].until, main.refused[-1].since, "") if main.refused else EVERY
    who = f"brokers {taken.brokers}" if taken.thresholds else "brokers"
    yield kind.finding(path, None, main.field, main.expected, main.problem, backup=said, start=start, who=who)


def refusals(path: str) -> Iterator[tuple[Rule, str]]:
    """The brokers that do not start with the file and its `.bak`, and why."""
    main, backup = _contents(path)
    for who in _refused(path, main, backup):
        yield who, f"neither this nor its .bak can be loaded: {backup.problem}"


def _refused(path: str, main: _Content, backup: _Content) -> list[Rule]:
    since = _FILES[base_name(path)].since
    if since is None or not backup.loaded:
        return []
    both = product(main.refused if main.loaded else (EVERY,), backup.refused)
    common = [since.and_also(one).and_also(other) for one, other in both]
    return [rule for rule in common if rule.until is None or numbers_of(rule.since or "0") < numbers_of(rule.until)]


def _start(refused: list[Rule]) -> str:
    if not refused:
        return "the broker starts without"
    who = " and ".join(f"brokers {rule.brokers}" for rule in refused) + " do not start"
    return f"{who if refused[0].thresholds else 'no broker starts'}, unless both are removed"


def no_config_directory(config: str) -> Finding | None:
    """Something else is in the place of the directory of these files."""
    if not disk.exists(config) or disk.is_directory(config):
        return None
    return catalogue.NOT_A_DIRECTORY.finding(config, expected="a directory", got=disk.kind_of(config))


def is_there(config: str, name: str) -> bool:
    """Whether there is the file or its `.bak`, whatever it holds."""
    return any(one.problem != "missing" for one in _contents(join(config, name)))


def _contents(path: str) -> tuple[_Content, _Content]:
    """Of the file and of its `.bak`."""
    file = _FILES[base_name(path)]
    return _content(path, file), _content(f"{path}.bak", file)


def _content(path: str, file: _File) -> _Content:
    try:
        text = saved(path).decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError):  # no broker finds a file where config/ is none
        return _Content("missing", loaded=False)
    except IsADirectoryError:
        return _Content("a directory", (EVERY,), "a file")
    except PermissionError:
        raise  # of who asks, not of the store: the broker's user may read it
    except OSError as error:
        require_answer(error, path)
        return _Content(str(error.strerror or error), (EVERY,))
    if not text:
        return _Content("nothing", loaded=False)
    try:
        return _taken(text, file)
    except FormatError as error:
        field = None if error.field is None else str(Text.of(error.field))
        problem = f"{error.what}, {error.got}" if field is None else str(error.got)
        return _Content(problem, (EVERY,), error.expected or "JSON", field)


def _taken(text: str, file: _File) -> _Content:
    """A `FormatError`: no broker can take it."""
    if not text.strip():
        return _Content("blanks", file.blanks)
    if not text.strip("\0"):
        return _Content("zeros", (EVERY,))
    found = json_value(text)
    if isinstance(found, dict):
        file.read(found)
        return _Content()
    refused = () if found is None else (FASTJSON_2,) if found == [] else (EVERY,)
    return _Content(in_json(found), refused, "an object")
