"""Repair of the index: new files for what none covers, the last file is continued, bad ones go to the backup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.files import disk
from mqindex.files.backups.exchange import Change
from mqindex.files.paths import base_name, join, parent_of
from mqindex.report import RepairReport
from mqindex.rocketmq.checks.coverage import Filled
from mqindex.rocketmq.checks.diagnosis import Diagnosis
from mqindex.rocketmq.index.names import names_between
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.rocketmq.pipeline.builds import build_index_files, require_room
from mqindex.rocketmq.pipeline.splits import assign
from mqindex.rocketmq.pipeline.stages import Built, Part
from mqindex.rocketmq.sidecar.names import DIRECTORY, FILTER, fence_path


def planned_actions(diagnosis: Diagnosis, names: Iterable[str] = ()) -> list[str]:
    """What `repair` would do, one sentence each. `names`: of the files that it writes, once they have some."""
    written = iter(names)
    actions = [f"move {base_name(path)} to the backup" for path in diagnosis.bad]
    for filled, planned in zip(diagnosis.gaps, _planned(diagnosis, ""), strict=True):
        for part in planned:
            entries, name = sum(piece.count for piece in part.slices), next(written, None)
            if part.base is not None:
                actions.append(f"continue {base_name(part.base)} with {plural(entries, 'entry')}")
            else:
                called = "named by the time of its first message" if name is None else f"named {name}"
                actions.append(f"write a new index file with {plural(entries, 'entry')} {_place(filled)}, {called}")
    end = max([one.end_timestamp for one in diagnosis.good], default=0)
    if _needs_checkpoint(diagnosis, end) or (diagnosis.survey.unclean and any(_planned(diagnosis, ""))):
        actions.append("move checkpoint.indexMsgTimestamp up, because `abort` exists")
    return actions


def _place(filled: Filled) -> str:
    after, before = filled.gap.after, filled.gap.before
    if after is not None:
        return f"after {base_name(after.path)}"
    return f"before {base_name(before.path)}" if before is not None else "as the first"


# ---- planning and building


def _planned(diagnosis: Diagnosis, scratch: str) -> list[list[Part]]:
    """The index files of each gap."""
    geometry, known = diagnosis.survey.geometry.value, diagnosis.survey.geometry_known
    planned = []
    for filled in diagnosis.gaps:
        after, tail = filled.gap.after, filled.gap.before is None
        continued = tail and after is not None and after.room > 0
        planned.append(
            assign(
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


def mend_index(engine: Engine, diagnosis: Diagnosis, scratch: str, report: RepairReport) -> list[Change]:
    """Build what is missing in `scratch`, and return what has to change below the store; the report gets it too.

    A bad file goes after all new ones are in place, or is replaced by one of its name; the checkpoint is last.
    """
    planned = _planned(diagnosis, scratch)
    files = [part for parts in planned for part in parts]
    require_room(engine, scratch, files)
    built = iter(build_index_files(engine, files))
    placed: list[tuple[Built, str]] = []
    for filled, parts in zip(diagnosis.gaps, planned, strict=True):
        placed += _named(filled, parts, [next(built) for _ in parts])
    end = max([one.end_timestamp for one in diagnosis.good] + [file.end_timestamp for file, _ in placed], default=0)
    changes = [Change(join("index", name), file.path) for file, name in placed]
    names = {change.name for change in changes}
    bad = [join("index", base_name(path)) for path in diagnosis.bad]
    changes += [Change(name) for name in bad if name not in names]
    changes += [Change(join(DIRECTORY, name)) for name in _sidecars_gone(diagnosis)]
    checkpoint = _moved_up(diagnosis, end)
    if checkpoint is not None:
        fresh = run_one(engine, _write_checkpoint, (scratch, checkpoint), "write the checkpoint")
        root = diagnosis.survey.options.root
        changes.append(Change("checkpoint", fresh, None if disk.is_file(join(root, "checkpoint")) else root))
    report.actions += planned_actions(diagnosis, [name for _, name in placed])
    report.entries = sum(filled.entries for filled in diagnosis.gaps)
    report.fsync_seconds += sum(file.fsync_seconds for file, _ in placed)
    return changes


def _sidecars_gone(diagnosis: Diagnosis) -> list[str]:
    """The fences of bad files, and with the last fence the key filter, which is then of no file's use."""
    fences = [path for path in map(fence_path, diagnosis.bad) if disk.exists(path)]
    if not fences or any(disk.exists(fence_path(one.path)) for one in diagnosis.good):
        return [base_name(path) for path in fences]
    keys = join(parent_of(fences[0]), FILTER)
    return [base_name(path) for path in [*fences, keys] if disk.exists(path)]


def _named(filled: Filled, parts: Sequence[Part], built: Sequence[Built]) -> list[tuple[Built, str]]:
    """Each built file with its name: a continued file keeps it, new ones sort between the neighbours."""
    after, before = filled.gap.after, filled.gap.before
    kept = [base_name(part.base) for part in parts if part.base is not None]
    fresh = names_between(
        base_name(after.path) if after is not None else None,
        base_name(before.path) if before is not None else None,
        [file.begin_timestamp for file in built[len(kept) :]],
    )
    return list(zip(built, kept + fresh, strict=True))


def _needs_checkpoint(diagnosis: Diagnosis, end: int) -> bool:
    known = diagnosis.checkpoint.index_msg_timestamp if diagnosis.checkpoint else 0
    return diagnosis.survey.unclean and end > known


def _moved_up(diagnosis: Diagnosis, end: int) -> Checkpoint | None:
    if not _needs_checkpoint(diagnosis, end):
        return None
    path = join(diagnosis.survey.options.root, "checkpoint")
    known = diagnosis.checkpoint
    if known is None and disk.is_file(path):  # one that may not be read is an error, not a missing one
        known = Checkpoint.read(path)
    return (known or Checkpoint())._replace(index_msg_timestamp=end)


def _write_checkpoint(item: tuple[str, Checkpoint]) -> str:
    scratch, checkpoint = item
    fresh = disk.temporary(scratch, "checkpoint")
    disk.write_new(fresh, checkpoint.to_bytes())
    disk.sync_file(fresh)
    return fresh
