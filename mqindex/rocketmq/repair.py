"""Repair: an index brought back in place. Good files stay untouched, only the gaps of the log are read and filled."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mqindex import staging
from mqindex.engines import Engine, LocalEngine
from mqindex.report import Finding, RepairReport
from mqindex.rocketmq import pipeline, stages
from mqindex.rocketmq import store as stores
from mqindex.rocketmq.checkpoint import Checkpoint
from mqindex.rocketmq.coverage import Filled
from mqindex.rocketmq.diagnosis import Diagnosis, diagnose
from mqindex.rocketmq.names import names_between
from mqindex.rocketmq.options import Config, store_options
from mqindex.rocketmq.pipeline import SPLIT_SIZE
from mqindex.rocketmq.rebuild import build_all, check_parts, one, require_capacity, scratch_in, start_report
from mqindex.rocketmq.stages import Built, Part
from mqindex.rocketmq.survey import survey

__all__ = ["planned_actions", "repair"]


def repair(
    store: str | os.PathLike[str],
    *,
    parts: Iterable[str] | None = None,
    deep: bool = False,
    dry_run: bool = False,
    config: Config | None = None,
    commitlog: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    broker_version: str | None = None,
    engine: Engine | None = None,
) -> RepairReport:
    """Give a stopped broker's store every index entry back, in place.

    Files that verify stay untouched; with `deep` every entry of theirs is compared with the log. New files get
    exactly the entries of the gap that they fill, under names that sort into place; a last file that is not full is
    continued. Replaced files and the old checkpoint go to `<store>/mqindex-backup-<UTC>/`. Where `abort` exists, the
    checkpoint is moved up, or the broker would delete the repaired file at its next start.

    Parameters
    ----------
    store : path of a store's root. parts : what to repair, None: all ("index"). dry_run : say it only, write nothing.
    config, commitlog, hash_slot_num, index_num, broker_version : store options, as for `rebuild`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    RepairReport
        `findings` are what is left after the repair (with `dry_run`: all), `actions` what was done.

    Raises
    ------
    StoreInUseError
        A broker holds the store.

    Notes
    -----
    Interrupted at any point, every file is the old or the new one, and a second run finishes.
    Source: RocketMQ 4.9.3 `IndexService.load`, `buildIndex`, `DefaultMessageStore.load`.
    """
    started = time.perf_counter()
    check_parts(parts)
    engine = engine or LocalEngine()
    options = store_options(
        store,
        config=config,
        commitlog=commitlog,
        hash_slot_num=hash_slot_num,
        index_num=index_num,
        broker_version=broker_version,
    )
    found = one(engine, survey, options, "survey")
    require_capacity(found)
    report = start_report(RepairReport(options.root, dry_run=dry_run), found)
    if dry_run:
        diagnosis = diagnose(engine, found, deep=deep, split_size=SPLIT_SIZE)
        report.findings = list(diagnosis.findings)
        report.actions = planned_actions(diagnosis)
    else:
        with _held(engine, options.root), scratch_in(engine, _home(options.index)) as scratch:
            diagnosis = diagnose(engine, found, deep=deep, split_size=SPLIT_SIZE, out=scratch)
            _mend(engine, diagnosis, scratch, report)
    report.messages = diagnosis.messages
    report.seconds = time.perf_counter() - started
    return report


def planned_actions(diagnosis: Diagnosis) -> list[str]:
    """What `repair` would do, one sentence each."""
    actions = [f"move {os.path.basename(path)} to the backup" for path in diagnosis.bad]
    for filled, planned in zip(diagnosis.gaps, _planned(diagnosis, ""), strict=True):
        for part in planned:
            entries = sum(piece.count for piece in part.slices)
            if part.base is not None:
                actions.append(f"continue {os.path.basename(part.base)} with {entries} entries")
            else:
                actions.append(f"write a new index file with {entries} entries {_place(filled)}")
    end = max([one.end_timestamp for one in diagnosis.good], default=0)
    if _needs_checkpoint(diagnosis, end) or (diagnosis.survey.unclean and any(_planned(diagnosis, ""))):
        actions.append("move checkpoint.indexMsgTimestamp up, because `abort` exists")
    return actions


def _place(filled: Filled) -> str:
    after, before = filled.gap.after, filled.gap.before
    if after is not None:
        return f"behind {os.path.basename(after.path)}"
    return f"before {os.path.basename(before.path)}" if before is not None else "as the first"


def _home(index: str) -> str:
    """Where the scratch goes: beside the index directory, in its file system, also where it is a link."""
    return os.path.dirname(os.path.realpath(index))


@contextmanager
def _held(engine: Engine, root: str) -> Iterator[None]:
    if os.path.isdir(root):
        with stores.hold_lock(root):
            yield
    else:  # the driver does not see the store: a task looks once
        one(engine, _try_lock, root, "lock")
        yield


def _try_lock(root: str) -> None:
    with stores.hold_lock(root):
        pass


# ---- planning and building


def _planned(diagnosis: Diagnosis, scratch: str) -> list[list[Part]]:
    """The index files of each gap."""
    geometry = diagnosis.survey.geometry.value
    planned = []
    for filled in diagnosis.gaps:
        after, tail = filled.gap.after, filled.gap.before is None
        continued = tail and after is not None and after.room > 0
        planned.append(
            pipeline.assign(
                filled.extracted.slices(filled.gap.skip, filled.gap.drop) if filled.entries else [],
                out=scratch,
                geometry=geometry,
                seed=(after.end_phy_offset, after.end_timestamp) if after is not None else None,
                base=after.path if continued and after is not None else None,
                room=after.room if tail and after is not None else None,
                more=tail and filled.message_follows,
                empty=tail and after is None and filled.extracted.messages > 0 and not diagnosis.good,
            )
        )
    return planned


def _mend(engine: Engine, diagnosis: Diagnosis, scratch: str, report: RepairReport) -> None:
    planned = _planned(diagnosis, scratch)
    built = iter(build_all(engine, [part for parts in planned for part in parts], scratch))
    placed: list[tuple[Part, Built, str]] = []
    for filled, parts in zip(diagnosis.gaps, planned, strict=True):
        placed += _named(filled, parts, [next(built) for _ in parts])
    end = max([one.end_timestamp for one in diagnosis.good] + [file.end_timestamp for _, file, _ in placed], default=0)
    checkpoint = _moved_up(diagnosis, end)
    report.actions = planned_actions(diagnosis)
    if report.actions:
        exchange = Exchange(
            root=diagnosis.survey.options.root,
            index=diagnosis.survey.options.index,
            backup=staging.unused(f"{diagnosis.survey.options.root}/mqindex-backup-{staging.backup_name()}"),
            remove=diagnosis.bad,
            place=tuple((file.path, name, part.base is not None) for part, file, name in placed),
            neighbour=diagnosis.survey.index_files[0] if diagnosis.survey.index_files else None,
            checkpoint=checkpoint,
        )
        report.out_files = one(engine, _exchange, exchange, "publish")
        report.backup = exchange.backup if exchange.saves else None
    report.findings = [_after_repair(finding) for finding in diagnosis.findings]
    report.files = len(placed)
    report.entries = sum(filled.entries for filled in diagnosis.gaps)
    report.fsync_seconds = sum(file.fsync_seconds for _, file, _ in placed)


def _named(filled: Filled, parts: Sequence[Part], built: Sequence[Built]) -> list[tuple[Part, Built, str]]:
    """Each built file with its name: a continued file keeps it, new ones sort between the neighbours."""
    after, before = filled.gap.after, filled.gap.before
    kept = [os.path.basename(part.base) for part in parts if part.base is not None]
    fresh = names_between(
        os.path.basename(after.path) if after is not None else None,
        os.path.basename(before.path) if before is not None else None,
        [file.begin_timestamp for file in built[len(kept) :]],
    )
    return list(zip(parts, built, kept + fresh, strict=True))


def _after_repair(finding: Finding) -> Finding:
    """What was mended is told, but is no error any more; what only the log itself could give back stays one."""
    if finding.severity == "info" or finding.kind.startswith(("log-", "frames-", "stray-", "index-order")):
        return finding
    return replace(finding, severity="info", hint="repaired")


def _needs_checkpoint(diagnosis: Diagnosis, end: int) -> bool:
    known = diagnosis.checkpoint.index_msg_timestamp if diagnosis.checkpoint else 0
    return diagnosis.survey.unclean and end > known


def _moved_up(diagnosis: Diagnosis, end: int) -> Checkpoint | None:
    if not _needs_checkpoint(diagnosis, end):
        return None
    return (diagnosis.checkpoint or Checkpoint())._replace(index_msg_timestamp=end)


# ---- exchanging the files


@dataclass(frozen=True, slots=True)
class Exchange:
    """Old files to the backup, new ones to their names. `place`: path, name, whether a file of the name is replaced."""

    root: str
    index: str
    backup: str
    remove: tuple[str, ...]
    place: tuple[tuple[str, str, bool], ...]
    neighbour: str | None
    checkpoint: Checkpoint | None

    @property
    def saves(self) -> bool:
        """Whether anything goes to the backup."""
        return bool(self.remove) or any(replaces for _, _, replaces in self.place) or self.checkpoint is not None


def _exchange(exchange: Exchange) -> list[str]:
    """One rename a file: whenever this is cut off, each name leads to the old file or to the new one.

    A bad file goes last of all, or is replaced where a new one takes its name, so that no name is ever without a file.
    """
    _make_directories(exchange)
    kept = os.path.join(exchange.backup, "index")
    final = [os.path.join(exchange.index, name) for _, name, _ in exchange.place]
    for (path, name, _), target in zip(exchange.place, final, strict=True):
        if os.path.exists(path) and os.path.exists(target):
            _keep(target, os.path.join(kept, name))
    if exchange.saves:
        staging.sync_directory(kept)
    for (path, _, _), target in zip(exchange.place, final, strict=True):
        if os.path.exists(path):
            staging.own_like(path, target if os.path.exists(target) else _neighbour(exchange))
            os.replace(path, target)
    for path in exchange.remove:
        if path not in final and os.path.exists(path):
            os.rename(path, os.path.join(kept, os.path.basename(path)))
    staging.sync_directory(exchange.index)
    if exchange.saves:
        staging.sync_directory(kept)
    if exchange.checkpoint is not None:
        _exchange_checkpoint(exchange, exchange.checkpoint)
    return final


def _make_directories(exchange: Exchange) -> None:
    wanted = [exchange.index]
    if exchange.saves:
        wanted += [exchange.backup, os.path.join(exchange.backup, "index")]
    for directory in wanted:
        if not os.path.isdir(directory):
            os.mkdir(directory)
            staging.own_like(directory, exchange.root)
    staging.sync_directory(exchange.root)


def _neighbour(exchange: Exchange) -> str:
    """A file whose owner and mode a new one takes: an index file where one is left, else the index directory."""
    kept = exchange.neighbour
    if kept is not None and not os.path.exists(kept):
        kept = os.path.join(exchange.backup, "index", os.path.basename(kept))
    return kept if kept is not None and os.path.exists(kept) else exchange.index


def _keep(path: str, backup: str) -> None:
    """A second name for the old file; where the file system has no links, a copy."""
    if os.path.exists(backup):
        return
    try:
        os.link(path, backup)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        stages.copy_file(path, backup)


def _exchange_checkpoint(exchange: Exchange, checkpoint: Checkpoint) -> None:
    path = os.path.join(exchange.root, "checkpoint")
    fresh = staging.temporary(exchange.backup, "checkpoint-new")
    with open(fresh, "xb") as file:
        file.write(checkpoint.to_bytes())
        file.flush()
        os.fsync(file.fileno())
    if os.path.exists(path):
        _keep(path, os.path.join(exchange.backup, "checkpoint"))
    staging.own_like(fresh, path if os.path.exists(path) else exchange.root)
    staging.replace(fresh, path)
