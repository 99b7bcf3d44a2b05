"""A table as a `polars.LazyFrame`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from mqindex._needs import needed
from mqindex.tables.bounds import hints_of

if TYPE_CHECKING:
    from mqindex.tables.table_dataset import TableDataset


def lazy_frame(dataset: TableDataset) -> Any:
    """The table; a query's columns, filter and number of rows reach the reader."""
    polars = needed("polars")
    from polars.io.plugins import register_io_source

    from mqindex.tables.polars_filter import tree_of

    def frames(columns: list[str] | None, predicate: Any, rows: int | None, size: int | None) -> Iterator[Any]:
        names = list(dataset.schema.names) if columns is None else columns
        compared = set() if predicate is None else set(predicate.meta.root_names())
        read = [name for name in dataset.schema.names if name in compared.union(names)] or dataset.schema.names[:1]
        bounds = {} if predicate is None else hints_of(tree_of(predicate))
        with closing(dataset._batches(read, bounds)) as batches:  # type: ignore[type-var]
            for batch in batches:
                frame = polars.from_arrow(batch)
                if rows is not None:  # of the table, before the filter
                    frame = frame.head(rows)
                    rows -= frame.height
                yield (frame if predicate is None else frame.filter(predicate)).select(names)
                if rows == 0:
                    return

    return register_io_source(frames, schema=polars.from_arrow(dataset.schema.empty_table()).schema)
