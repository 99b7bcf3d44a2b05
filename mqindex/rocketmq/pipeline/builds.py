"""The stages that build files, mapped over all files by an engine, and where index files go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter

from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.rocketmq import layout
from mqindex.rocketmq.index.names import names_between
from mqindex.rocketmq.pipeline import stages
from mqindex.rocketmq.pipeline.queue_stages import BuiltQueues, QueueBatch, QueueWork, build_queues
from mqindex.rocketmq.pipeline.stages import Built, Part


def require_room(engine: Engine, scratch: str, planned: Sequence[Part], more: int = 0) -> None:
    """Check that there is room for the planned files, and for `more` bytes."""
    sizes = [layout.index_file_size(part.hash_slot_num, part.index_num) for part in planned]
    run_one(engine, _check_room, (scratch, sum(sizes) + more), "check the free space")


def _check_room(item: tuple[str, int]) -> None:
    disk.check_space(*item)


def build_index_files(engine: Engine, planned: Sequence[Part]) -> list[Built]:
    """Build every index file, a task each."""
    weights = [1 + sum(piece.count for piece in part.slices) for part in planned]
    return engine.map(stages.build, planned, name="build the index", weights=weights, unit="entry")


def build_queue_files(engine: Engine, work: QueueWork, batches: Sequence[QueueBatch]) -> BuiltQueues:
    """Build every queue, many in a task; they come in the order of their names."""
    stage, weights = partial(build_queues, work), [batch.units + 1 for batch in batches]
    built = engine.map(stage, batches, name="build the queues", weights=weights, unit="unit") if batches else []
    return BuiltQueues(
        tuple(sorted((queue for task in built for queue in task.queues), key=attrgetter("name"))),
        dict(item for task in built for item in task.left_out.items()),
        sum(task.fsync_seconds for task in built),
    )


def index_moves(built: Sequence[Built]) -> list[tuple[str, str]]:
    """Built index files, and where they go: their names are chosen by their first times."""
    names = names_between(None, None, [part.begin_timestamp for part in built])
    return [(part.path, join("index", name)) for part, name in zip(built, names, strict=True)]
