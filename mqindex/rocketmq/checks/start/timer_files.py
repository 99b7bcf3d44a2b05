"""The files of the messages that a 5.x broker delivers at a given time: with another length it does not start.

Each delay is in the wheel, one slot a second or less, and in the timer log. Source: RocketMQ 5.0.0 to 5.5.0
`TimerMessageStore`, `TimerWheel`, `TimerLog`, `MappedFileQueue.doLoad`, `BrokerController.initialize`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mqindex._words import plural
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, kinds
from mqindex.rocketmq.checks.start.config_files import no_config_directory
from mqindex.rocketmq.checks.start.start_files import NO_FILE, Entry, listed, log_file_size, not_a_file
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.settings import TIMER_LOG_FILE_SIZE, TIMER_SNAPSHOTS, TIMER_WHEEL

_WHEEL_SIZE: Final = 7 * 24 * 3600 * 2 * 32  # slots of a week, twice, whatever timerPrecisionMs is


class TimerFault(NamedTuple):
    """`unless`: the setting with which a broker would start; None: none would do."""

    path: str
    reason: str
    unless: str | None
    finding: Finding


def timers_are_on(options: StoreOptions) -> bool:
    """Whether a broker of 5.0 or later loads these files."""
    return options.value(TIMER_WHEEL)


def timer_faults(options: StoreOptions) -> Iterator[TimerFault]:
    """What keeps such a broker from starting."""
    config = join(options.root, "config")
    no_directory = no_config_directory(config)
    if no_directory is not None:  # it makes a file there
        yield TimerFault(config, f"{no_directory.got}, not a directory", None, no_directory)
    checkpoint = join(config, "timercheck")
    if disk.is_directory(checkpoint):
        yield TimerFault(checkpoint, NO_FILE, None, not_a_file(checkpoint))
    for one in _wheels(options):
        if one.directory:
            finding = catalogue.TIMER_WHEEL_LENGTH.finding(one.path, expected="a file", got="a directory")
            yield TimerFault(one.path, NO_FILE, None, finding)
        elif one.size not in (0, _WHEEL_SIZE):
            finding = catalogue.TIMER_WHEEL_LENGTH.finding(one.path, expected=_WHEEL_SIZE, got=one.size)
            yield TimerFault(one.path, _length(one, _WHEEL_SIZE), None, finding)
    entries = listed([join(options.root, "timerlog")])
    known = options.known(TIMER_LOG_FILE_SIZE) or log_file_size(entries)
    for at, one in enumerate(entries):
        if one.directory or (one.size == 0 and at == len(entries) - 1):  # deleted or passed over
            continue
        size = known or TIMER_LOG_FILE_SIZE.default
        if one.size != size:
            finding = catalogue.TIMER_LOG_LENGTH.finding(one.path, expected=size, got=one.size)
            unless = None if known else f"unless {TIMER_LOG_FILE_SIZE.name} is {one.size}"
            yield TimerFault(one.path, _length(one, size), unless, finding)
        elif kinds.number_of(one.name) is None:
            finding = catalogue.TIMER_LOG_STRAY.finding(one.path, expected="20 digits", got=one.name)
            yield TimerFault(one.path, "not named by a number", None, finding)


def _wheels(options: StoreOptions) -> list[Entry]:
    """The one that is loaded: with timerWheelSnapshotFlush (from 5.4 on) the newest snapshot, where there is one."""
    there = {one.name: one for one in listed([options.root]) if re.fullmatch(r"timerwheel(\.\d{1,18})?", one.name)}
    plain = there.pop("timerwheel", None)
    if options.value(TIMER_SNAPSHOTS) and there:
        return [max(there.values(), key=lambda one: int(one.name.partition(".")[2]))]
    return [] if plain is None else [plain]


def _length(one: Entry, size: int) -> str:
    return f"{plural(one.size, 'byte')}, not {size}"
