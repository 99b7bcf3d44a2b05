"""`--out FILE` of a command that prints a table of any length: the file appears when it is complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

from mqindex._words import plural
from mqindex.cli.places import appearing as what_is_true
from mqindex.cli.places import require_no_broker_file, require_outside
from mqindex.cli.trouble import Trouble, say, true_from_here
from mqindex.files.places.place import Place

if TYPE_CHECKING:
    from mqindex.cli.printing.formats import Columns

ENDINGS: Final = {".csv": "csv", ".ndjson": "ndjson", ".json": "ndjson", ".arrow": "arrow", ".parquet": "parquet"}


class Counted:
    """How many rows went through."""

    rows = 0

    def of(self, batches: Generator[Columns]) -> Generator[Columns]:
        from mqindex.cli.printing.formats import rows_of

        with contextlib.closing(batches):
            for batch in batches:
                self.rows += rows_of(batch)
                yield batch


@contextlib.contextmanager
def written_to(out: str | None, *homes: str, force: bool, counted: Counted) -> Iterator[None]:
    """What is printed in the block goes to a new file, which appears at its end; None: to stdout.

    homes : whose files they are; the new one is in no part of them. counted : the rows that the block prints.
    """
    if out is None:
        yield
        return
    if isinstance(out, Place):
        raise Trouble(f"{out}: expected a file of this machine")
    from mqindex.files.results.whole_file import new_text, require_new_file

    for home in homes or (None,):
        require_outside(out, home)
    require_no_broker_file(out)
    require_new_file(os.path.abspath(out), overwrite=force)
    true_from_here(what_is_true(out))
    with new_text(out, overwrite=force) as file, contextlib.redirect_stdout(file):
        yield
    say(f"wrote {plural(counted.rows, 'row')} to {out}")
