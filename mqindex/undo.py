"""Taking a repair back, for files of every broker."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from mqindex.files.backups.backup import backup_in, find_backups
from mqindex.files.backups.backup_record import require_intact, require_next
from mqindex.files.backups.exchange import put_back, taken_back, written_since
from mqindex.files.results import staging
from mqindex.files.rights import as_owner_of
from mqindex.report import Kind, RepairReport


def take_back(
    root: str,
    backup: str | os.PathLike[str],
    homes: Sequence[str],
    hold: Callable[[], AbstractContextManager[None]],
    written: Kind,
    *,
    dry_run: bool,
) -> RepairReport:
    """Put the files of a repair back, in those directories `homes` of `root` that have this backup.

    Where one of them has a newer backup, or a file of one is not what it was, nothing is done. The files now in place
    go to a backup of their own.

    hold : keeps the broker out meanwhile.
    written : what is reported of a file that was written to after the repair: what goes back has nothing of that.
    dry_run : only check the backups, and say what would be done.
    """
    started = time.perf_counter()
    report = RepairReport(root, dry_run=dry_run)
    with as_owner_of(root, reading=True), contextlib.nullcontext() if dry_run else hold():
        found = find_backups(backup, root, homes)
        for path in found:
            require_next(path)
            require_intact(path)
        aside = backup_in([os.path.dirname(path) for path in found])
        for path in found:
            home = os.path.dirname(path)
            if not dry_run:
                staging.sweep(home)
            report.findings += map(written.finding, written_since(home, path))
            done = taken_back(home, path) if dry_run else put_back(home, path, os.path.join(home, aside))
            report.actions += [one.undone(os.path.relpath(home, root)) for one in done]
            if not dry_run:
                report.out_files += [os.path.join(home, one.name) for one in done if one.source is not None]
    if report.actions and not dry_run:
        report.backup = os.path.join(root, *([] if list(homes) == [root] else ["*"]), aside)
    report.files = len(report.out_files)
    report.seconds = time.perf_counter() - started
    return report
