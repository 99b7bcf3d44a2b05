"""What is open until `close()`: every class of both brokers that holds files, maps or locks."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar, Self

from mqindex.errors import ClosedFileError


class Closable:
    """A context manager that closes at its end. `close` sets `_closed`; it may be called twice."""

    _closed = False
    _thing: ClassVar[str] = "file"
    _path_attribute: ClassVar[str] = "path"

    def close(self) -> None:
        """Release everything."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedFileError(f"the {self._thing} is closed", path=getattr(self, self._path_attribute))
