"""The task that puts files in their places, and what is true of them where its worker dies."""

from __future__ import annotations

from functools import partial

from mqindex.engines import Engine
from mqindex.engines.tasks import half_done, run_one
from mqindex.files.backups.exchange import Exchange, changed_so_far, exchange_files
from mqindex.files.results.publication import Publication, Published, publish, published_so_far

_NAME = "publish"


def publish_all(engine: Engine, publication: Publication) -> Published:
    """`publish` in a task."""
    with half_done(partial(published_so_far, publication)):
        return run_one(engine, publish, publication, _NAME)


def exchange_all(engine: Engine, exchange: Exchange) -> list[str]:
    """`exchange_files` in a task."""
    with half_done(partial(changed_so_far, exchange)):
        return run_one(engine, exchange_files, exchange, _NAME)
