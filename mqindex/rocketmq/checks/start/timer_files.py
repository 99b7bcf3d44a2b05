"""The files of the messages that a 5.x broker delivers at a given time: with another length it does not start.

Each delay is in the wheel, one slot a second or less, and in the timer log, which is loaded as the log is. Source:
RocketMQ 5.0.0 to 5.5.0 `TimerMessageStore`, `TimerWheel`, `BrokerController.initialize`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mqindex._words import plural
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.start.config_files import no_config_directory
from mqindex.rocketmq.checks.start.start_files import NO_FILE, Entry, listed, not_a_file
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.settings import TIMER_SNAPSHOTS, TIMER_WHEEL

_WHEEL_SIZE: Final = 7 * 24 * 3600 * 2 * 32  # slots of a week, twice, whatever timerPrecisionMs is


class TimerFault(NamedTuple):
    """What keeps a broker with timers from starting."""

    path: str
    reason: str
    finding: Finding


def timers_are_on(options: StoreOptions) -> bool:
    """Whether a broker of 5.0 or later loads these files."""
    return options.value(TIMER_WHEEL)


def timer_faults(options: StoreOptions) -> Iterator[TimerFault]:
    """What is in the place of other files than those of the timer log."""
    config = join(options.root, "config")
    no_directory = no_config_directory(config)
    if no_directory is not None:  # it makes a file there
        yield TimerFault(config, f"{no_directory.got}, not a directory", no_directory)
    checkpoint = join(config, "timercheck")
    if disk.is_directory(checkpoint):
        yield TimerFault(checkpoint, NO_FILE, not_a_file(checkpoint))
    for one in _wheels(options):
        if one.directory:
            finding = catalogue.TIMER_WHEEL_LENGTH.finding(one.path, expected="a file", got="a directory")
            yield TimerFault(one.path, NO_FILE, finding)
        elif one.size not in (0, _WHEEL_SIZE):
            finding = catalogue.TIMER_WHEEL_LENGTH.finding(one.path, expected=_WHEEL_SIZE, got=one.size)
            yield TimerFault(one.path, f"{plural(one.size, 'byte')}, not {_WHEEL_SIZE}", finding)


def _wheels(options: StoreOptions) -> list[Entry]:
    """The one that is loaded: with timerWheelSnapshotFlush (from 5.4 on) the newest snapshot, where there is one."""
    there = {one.name: one for one in listed([options.root]) if re.fullmatch(r"timerwheel(\.\d{1,18})?", one.name)}
    plain = there.pop("timerwheel", None)
    if options.value(TIMER_SNAPSHOTS) and there:
        return [max(there.values(), key=lambda one: int(one.name.partition(".")[2]))]
    return [] if plain is None else [plain]
