"""`mqindex follow`."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING

import click

from mqindex._words import plural
from mqindex.cli.kinds import require_store
from mqindex.cli.options import cache_option, json_option, store_options, subcommand
from mqindex.cli.places import require_outside
from mqindex.cli.printing.output import print_json, print_line
from mqindex.cli.printing.progress import progress_bars
from mqindex.cli.rocketmq.actions import require_log
from mqindex.cli.trouble import interrupt, true_from_here
from mqindex.wording.text import iso

if TYPE_CHECKING:
    from mqindex.rocketmq.dispatch.follow import FollowReport
    from mqindex.rocketmq.dispatch.reput import ReputProgress
    from mqindex.rocketmq.options import StoreArguments


@subcommand(
    "follow",
    "mqindex follow /data/store --out /data/beside",
    here="a log that grows is followed on the broker's own disk: `mqindex rebuild` reads a URL once",
)
@click.argument("store", metavar="STORE")
@click.option("--out", required=True, metavar="DIR", help="Where the index and the queues are kept; not in STORE.")
@cache_option()
@store_options
@json_option
def command(*, store: str, out: str, cache: str | bool | None, options: StoreArguments, as_json: bool) -> int:
    """Keep an index and consume queues in DIR up to date with STORE's commit log, beside a live broker.

    STORE is only read. A message is found, with `mqindex query DIR`, a few milliseconds after the broker stored it.
    Zone maps of the log, which later scans read, grow in the user's cache. Ctrl-C or SIGTERM stops; the next run
    continues there. After a crash it repairs DIR first. Exit code 0: stopped.
    """
    from mqindex.engines import LocalEngine
    from mqindex.rocketmq.dispatch.follow import follow

    require_store(store)
    require_log(store, options)
    require_outside(out)
    if isinstance(cache, str):
        require_outside(cache, store)
    true_from_here("every file is the old or the new one; run it again to continue")
    line = _Line(as_json=as_json)
    with _signals() as stop, contextlib.ExitStack() as bars:

        def show_line(now: ReputProgress) -> None:
            bars.close()  # a repair's bars would be drawn over the line
            line.show(now)

        engine = LocalEngine(progress=bars.enter_context(progress_bars()))
        try:
            report = follow(store, out, stop=stop, progress=show_line, cache=cache, engine=engine, **options)
        finally:
            line.clear()
        if as_json:
            print_json("follow", {"event": "stopped", **asdict(report)})
        else:
            print_line(_closing(report))
    return 0


def _closing(report: FollowReport) -> str:
    stored = f", stored {iso(report.store_timestamp)}" if report.store_timestamp else ""
    counts = ", ".join(
        (
            plural(report.messages, "message"),
            plural(report.entries, "entry"),
            plural(report.units, "unit"),
        )
    )
    repairs = f"; repaired {plural(report.repairs, 'time')}" if report.repairs else ""
    refused = f"; {plural(report.refused, 'unit')} of queues that cannot be files" if report.refused else ""
    return (
        f"stopped at phy offset {report.phy_offset}{stored}: {counts} into {report.out} in {report.seconds:.1f} s"
        f"{repairs}{refused}"
    )


_SAME_SIGNAL = 0.5  # s


class _Stop:
    """Set by a signal. A handler takes no lock, because it could wait for it without end."""

    def __init__(self) -> None:
        self._set = False
        self._since = 0.0
        self.following = False

    def is_set(self) -> bool:
        """Called by the loop, which from then on ends by itself."""
        self.following = True
        return self._set

    def wait(self, timeout: float) -> None:
        if not self._set:
            time.sleep(timeout)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The first signal ends the loop; a second, or one before the loop, interrupts.

        One right after the first counts as the same: `timeout` signals its child, and then the child's whole group.
        """
        now = time.monotonic()
        if not self.following or (self._set and now - self._since > _SAME_SIGNAL):
            interrupt(number, frame)
        if not self._set:
            self._set, self._since = True, now


@contextlib.contextmanager
def _signals() -> Iterator[_Stop]:
    """SIGINT, SIGTERM and SIGHUP set the stop while this lasts; one that is ignored (`nohup`) stays so."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop.handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Line:
    """Progress: JSON lines with --json, else one line that is overwritten, on a terminal only."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._watched = sys.stderr.isatty()
        self._shown = (-1, -1)

    def show(self, now: ReputProgress) -> None:
        if self._as_json and (now.phy_offset, now.lag_bytes) != self._shown:
            self._shown = now.phy_offset, now.lag_bytes
            print_json("follow", {"event": "progress", **asdict(now)})
            sys.stdout.flush()
        elif self._watched:
            sys.stderr.write(f"\r{_state(now)}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._watched and not self._as_json:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _state(now: ReputProgress) -> str:
    stored = f"  {iso(now.store_timestamp)}" if now.store_timestamp else ""
    return (
        f"phy offset {now.phy_offset:,}  {now.lag_bytes:,} bytes behind"
        f"  {now.messages_per_second:,.0f} messages/s{stored}"
    )
