"""`TableScanner`: one reading of a table, with a filter and columns, as engines ask a `pyarrow.dataset.Scanner` for it.

Arrow's own scanner reads ahead in threads of its own: one that is given up early goes on reading, and a process that
ends meanwhile waits for it for ever. This one reads a batch when it is asked for one, in the thread that asks, and lets
its files go when it is let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pyarrow as pa
from pyarrow import acero

Batches = Callable[[], Iterator[pa.RecordBatch]]


class TableScanner:
    """What reads the rows of a table.

    Attributes
    ----------
    dataset_schema, projected_schema : pyarrow.Schema, of the table and of what is read of it
    """

    def __init__(
        self, schema: pa.Schema, read: Batches, none: pa.Table, columns: Any, wanted: Any, batch_size: int
    ) -> None:
        self.dataset_schema = schema
        self._read, self._columns, self._wanted, self._batch_size = read, columns, wanted, batch_size
        self.projected_schema = self._passing(none).schema  # a filter that cannot be compared is an error here

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, one batch at a time."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The same as an iterator."""
        with closing(self._read()) as batches:  # type: ignore[type-var]
            for batch in batches:
                yield from self._passing(pa.Table.from_batches([batch])).to_batches(max_chunksize=self._batch_size)

    def to_table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.to_batches(), schema=self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        found: list[pa.RecordBatch] = []
        with closing(self.to_batches()) as batches:  # type: ignore[type-var]
            for batch in batches if num_rows > 0 else ():
                found.append(batch.slice(0, num_rows))
                num_rows -= len(found[-1])
                if num_rows <= 0:
                    break
        return pa.Table.from_batches(found, schema=self.projected_schema)

    def take(self, indices: Any) -> pa.Table:
        """The rows with these numbers."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for batch in self.to_batches())

    def _passing(self, rows: pa.Table) -> pa.Table:
        """The rows that the filter lets pass, with the columns that are asked for."""
        nodes = []
        if self._wanted is not None:
            nodes.append(acero.Declaration("filter", acero.FilterNodeOptions(self._wanted)))
        if isinstance(self._columns, Mapping):
            values = list(self._columns.values()), list(self._columns)
            nodes.append(acero.Declaration("project", acero.ProjectNodeOptions(*values)))
        if nodes:
            source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
            rows = acero.Declaration.from_sequence([source, *nodes]).to_table(use_threads=False)
        return rows if self._columns is None or isinstance(self._columns, Mapping) else rows.select(list(self._columns))
