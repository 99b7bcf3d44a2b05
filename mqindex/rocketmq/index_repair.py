"""Repair of the index: the gaps of the log are filled with new files, the last file is continued, bad ones go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from mqindex.driving import one
from mqindex.engines import Engine
from mqindex.files import disk
from mqindex.files.backup import keep, move_aside
from mqindex.report import RepairReport
from mqindex.rocketmq.checks.coverage import Filled
from mqindex.rocketmq.checks.diagnosis import Diagnosis
from mqindex.rocketmq.index.names import names_between
from mqindex.rocketmq.pipeline import pipeline
from mqindex.rocketmq.pipeline.stages import Built, Part
from mqindex.rocketmq.rebuild import build_all
from mqindex.rocketmq.side.checkpoint import Checkpoint

__all__ = ["Exchange", "mend_index", "planned_actions"]


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


# ---- planning and building


def _planned(diagnosis: Diagnosis, scratch: str) -> list[list[Part]]:
    """The index files of each gap."""
    geometry, known = diagnosis.survey.geometry.value, diagnosis.survey.geometry_known
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
                empty=tail and after is None and filled.extracted.messages > 0 and not diagnosis.good and known,
            )
        )
    return planned


def mend_index(engine: Engine, diagnosis: Diagnosis, scratch: str, backup: str, report: RepairReport) -> None:
    """Build what is missing in `scratch`, exchange the files, tell the report; what is replaced goes to `backup`."""
    planned = _planned(diagnosis, scratch)
    built = iter(build_all(engine, [part for parts in planned for part in parts], scratch))
    placed: list[tuple[Part, Built, str]] = []
    for filled, parts in zip(diagnosis.gaps, planned, strict=True):
        placed += _named(filled, parts, [next(built) for _ in parts])
    end = max([one.end_timestamp for one in diagnosis.good] + [file.end_timestamp for _, file, _ in placed], default=0)
    checkpoint = _moved_up(diagnosis, end)
    actions = planned_actions(diagnosis)
    report.actions += actions
    if actions:
        exchange = Exchange(
            root=diagnosis.survey.options.root,
            index=diagnosis.survey.options.index,
            backup=backup,
            remove=diagnosis.bad,
            place=tuple((file.path, name, part.base is not None) for part, file, name in placed),
            neighbour=diagnosis.survey.index_files[0] if diagnosis.survey.index_files else None,
            checkpoint=checkpoint,
        )
        report.out_files += one(engine, _exchange, exchange, "publish")
    report.files += len(placed)
    report.entries = sum(filled.entries for filled in diagnosis.gaps)
    report.fsync_seconds += sum(file.fsync_seconds for _, file, _ in placed)


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
    checkpoint = _write_checkpoint(exchange) if exchange.checkpoint is not None else None
    kept = os.path.join(exchange.backup, "index")
    final = [os.path.join(exchange.index, name) for _, name, _ in exchange.place]
    for (path, name, _), target in zip(exchange.place, final, strict=True):
        if os.path.exists(path) and os.path.exists(target):
            keep(target, os.path.join(kept, name), exchange.root)
    if exchange.saves:
        disk.sync_directory(kept)
    for (path, _, _), target in zip(exchange.place, final, strict=True):
        if os.path.exists(path):
            disk.own_like(path, target if os.path.exists(target) else _neighbour(exchange))
            os.replace(path, target)
    for path in exchange.remove:
        if path not in final and os.path.exists(path):
            move_aside(path, os.path.join(kept, os.path.basename(path)), exchange.root)
    disk.sync_directory(exchange.index)
    if exchange.saves:
        disk.sync_directory(kept)
    if checkpoint is not None:
        _exchange_checkpoint(exchange, checkpoint)
    return final


def _make_directories(exchange: Exchange) -> None:
    wanted = [exchange.index]
    if exchange.saves:
        wanted += [exchange.backup, os.path.join(exchange.backup, "index")]
    for directory in wanted:
        if not os.path.isdir(directory):
            os.mkdir(directory)
            disk.own_like(directory, exchange.root)
    disk.sync_directory(exchange.root)


def _neighbour(exchange: Exchange) -> str:
    """A file whose owner and mode a new one takes: an index file where one is left, else the index directory."""
    kept = exchange.neighbour
    if kept is not None and not os.path.exists(kept):
        kept = os.path.join(exchange.backup, "index", os.path.basename(kept))
    return kept if kept is not None and os.path.exists(kept) else exchange.index


def _write_checkpoint(exchange: Exchange) -> str:
    """The new checkpoint, aside, before any file is exchanged: where it cannot be written, nothing has changed."""
    assert exchange.checkpoint is not None
    fresh = disk.temporary(exchange.backup, "checkpoint-new")
    try:
        with open(fresh, "xb") as file:
            file.write(exchange.checkpoint.to_bytes())
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            os.unlink(fresh)
            os.rmdir(os.path.join(exchange.backup, "index"))
            os.rmdir(exchange.backup)
        raise
    return fresh


def _exchange_checkpoint(exchange: Exchange, fresh: str) -> None:
    path = os.path.join(exchange.root, "checkpoint")
    kept = os.path.join(exchange.backup, "checkpoint")
    if os.path.isdir(path):
        move_aside(path, kept, exchange.root)
    elif os.path.exists(path):
        keep(path, kept, exchange.root)
    disk.own_like(fresh, path if os.path.exists(path) else exchange.root)
    disk.replace(fresh, path)
