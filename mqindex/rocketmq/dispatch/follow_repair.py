"""What a follower does first where its last exit was not clean, or where the log was changed meanwhile."""

from __future__ import annotations

from mqindex.engines import Engine
from mqindex.files import disk
from mqindex.rocketmq.checks.diagnosis import check_files
from mqindex.rocketmq.dispatch.follow_home import FollowHome
from mqindex.rocketmq.pipeline.log_end import fix_log_end
from mqindex.rocketmq.pipeline.parts import check_parts
from mqindex.rocketmq.pipeline.splits import SPLIT_SIZE
from mqindex.rocketmq.pipeline.survey import survey
from mqindex.rocketmq.queue.consume_queue_table import remove_scraps
from mqindex.rocketmq.repair import repair_store

_NEWEST = 3  # index files that a changed end of the log reaches


def mend(home: FollowHome, engine: Engine) -> bool:
    """Repair index and queues; False: there are none yet."""
    if not home.has_files:
        return False
    remove_scraps(home.consume_queue)
    _drop_newest(home, engine)
    repair_store(home.options, check_parts(None), engine=engine, look_again=False)
    return True


def _drop_newest(home: FollowHome, engine: Engine) -> None:
    """Remove the newest index files from the first bad one on: then the repair continues as an uninterrupted follower.

    A repair keeps every good file, also one after a bad file, whose gap then gets files that are not full.
    """
    found, _ = fix_log_end(engine, survey(home.options), SPLIT_SIZE)
    count = len(found.index_files)
    newest = range(max(0, count - _NEWEST), count)
    checked = check_files(engine, found, newest, deep=False)
    bad = next((number for number, one in zip(newest, checked, strict=True) if not one.good), count)
    for path in found.index_files[bad:]:
        disk.remove(path)
