"""The files of a commit log, mapped while they are needed: which holds a phy offset, and which are deleted by now."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mqindex.errors import FormatError, TruncatedFileError
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.paths import status_of
from mqindex.files.places.place import Place
from mqindex.files.reading.file_maps import FileMaps
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.expiry import LogExpiredError
from mqindex.rocketmq.log.frame_windows import MARGIN, frame_window
from mqindex.rocketmq.log.log_files import LogFile, Skipped

if TYPE_CHECKING:
    from typing_extensions import Buffer


class MappedLog(Closable):
    """The listed files of one log, not more than a few mapped at a time. For several threads."""

    _thing = "commit log"
    _path_attribute = "_path"

    def __init__(self, files: Sequence[LogFile], skipped: Sequence[Skipped]) -> None:
        self.files = list(files)
        self.skipped = list(skipped)
        self.expired: list[LogFile] = []
        self._starts = [file.start for file in files]
        self._maps = FileMaps("commit log")

    @property
    def min_phy_offset(self) -> int:
        """The phy offset at which the first file begins; 0 for a log without files."""
        return self.files[0].start if self.files else 0

    def _file_at(self, phy_offset: int) -> tuple[LogFile, Buffer]:
        """The file that holds a phy offset, and a buffer with the frame there; errors as `map_at`."""
        file, mapped = self._map_at(phy_offset)
        return file, frame_window(mapped, file.start, phy_offset)

    def _frames_at(
        self, phy_offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.integer[Any]]
    ) -> tuple[LogFile, Buffer]:
        """The same for frames of one file; sizes: as a queue has them."""
        file, mapped = self._map_at(int(phy_offsets[0]))
        first = phy_offsets.astype(np.int64) - file.start
        return file, mapped.windows(first, first + sizes + MARGIN)  # a frame may be longer than a queue has it

    def _map_at(self, phy_offset: int) -> tuple[LogFile, MappedFile]:
        """The file that holds a phy offset, mapped.

        `FormatError`: there is none, or a broker has deleted it (`LogExpiredError`).
        """
        file = self._file_of(phy_offset)
        try:
            return file, self._map_of(file)
        except FileNotFoundError:
            number = self.files.index(file)
            if number == len(self.files) - 1 or not self._has_expired(number):
                raise
            low = next((one.start for one in self.files[number:] if disk.exists(one.path)), self.files[-1].start)
            raise self._not_there(phy_offset, low, LogExpiredError) from None

    def close(self) -> None:
        """Unmap. May be called twice."""
        self._closed = True
        self._maps.close()

    @property
    def _path(self) -> str | None:
        return self.files[0].path if self.files else None

    def _add(self, file: LogFile) -> None:
        at = bisect_right(self._starts, file.start)
        self.files.insert(at, file)
        self._starts.insert(at, file.start)

    def _has_expired(self, number: int) -> bool:
        """Whether a file and all before it are gone: a broker deletes the log from its old end."""
        if any(disk.exists(file.path) for file in self.files[: number + 1]):
            return False
        if self.files[number] not in self.expired:
            self.expired.append(self.files[number])
        return True

    def _file_of(self, phy_offset: int) -> LogFile:
        number = bisect_right(self._starts, phy_offset) - 1
        if number < 0 or phy_offset >= self.files[number].stop:
            raise self._not_there(phy_offset, self.min_phy_offset, FormatError)
        return self.files[number]

    def _map_of(self, file: LogFile) -> MappedFile:
        self._require_open()
        mapped = self._maps.get(file.path, lambda _: file.open())
        _require_whole(file, mapped)
        return mapped

    def _not_there(self, phy_offset: int, low: int, kind: type[FormatError]) -> FormatError:
        return kind(
            "the phy offset is not in the log",
            path=self.files[0].path if self.files else None,
            expected=f"{low}..{self.files[-1].stop - 1}" if self.files else "a log with files",
            got=phy_offset,
            hint="the broker may have deleted the file that held it",
        )


def _require_whole(file: LogFile, mapped: MappedFile) -> None:
    """Refuse a file that is shorter now: where it ends inside a page, its map would read as zeros."""
    if isinstance(file.path, Place):
        return  # a window makes sure of it
    size = status_of(file.path).st_size
    if min(size, mapped.size) < file.size or size < mapped.size:
        raise TruncatedFileError(
            "the file shrank while it was open", path=file.path, expected=f"{file.size} bytes", got=size
        )
