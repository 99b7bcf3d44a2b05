"""Whether the success of a sync can be believed."""

from __future__ import annotations

from types import TracebackType


class SyncTrust:
    """Wraps every sync of one thing. After a failed sync the disk's content is unknown: the system may have dropped
    what it could not write, so that the next sync succeeds. Therefore every later sync raises the same `OSError`.
    """

    def __init__(self) -> None:
        self._failed: tuple[int | None, str, str | None] | None = None

    def __enter__(self) -> None:
        if self._failed is not None:
            number, text, path = self._failed
            raise OSError(number, text, path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OSError):
            self._failed = error.errno, error.strerror or str(error), error.filename
