"""A commit log that somebody else may be writing, read from one phy offset on: every frame once, and none torn.

A broker copies a frame into the mapped file, and a reader may read while it does. So the log's end is found first, by
sizes alone, and only what is complete then is read: a frame with another record after it, and the last frame if it has
not changed between two looks. What follows the end may be zeros, or old bytes of a file that is used again. The log may
also be cut and written anew below what was read already: a checksum over what was read last shows it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.commit_log import Scanner, last_record
from mqindex._native.crc import crc32c
from mqindex._native.log_extract import Extractor, QueueTable
from mqindex.errors import FileStateError, TruncatedFileError
from mqindex.files.closable import Closable
from mqindex.files.paths import status_of
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import layout
from mqindex.rocketmq.log.damage import Damage, damage_of
from mqindex.rocketmq.log.expiry import read_again
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, UNIT, drained
from mqindex.rocketmq.log.log_files import LogFile, data_end, last_file_with_frames, list_log_files

_REACH = 32 << 20  # bytes of log at a time where much is unread
_NEAR = 64 << 10  # bytes at a time where little is unread: a single cursor walks them
_FAR = 4 << 20  # bytes that are read ahead in a file that grows
_SEALED = 64 << 10  # bytes before the position that are watched for changes
SETTLE_SECONDS = 0.0005  # between two looks at a last frame
_PAUSE_SECONDS = 0.001  # before it is looked at again
_DOUBT_SECONDS = 0.1  # instead of that, where its properties end in a zero byte, as those of a torn frame may
_LOOK_SECONDS = 0.1  # between two looks at the directory while nothing comes
_NO_UNITS = np.empty(0, UNIT)
_MAGICS = tuple(
    magic.to_bytes(4, "big", signed=True)
    for magic in (layout.MAGIC_MESSAGE_V1, layout.MAGIC_MESSAGE_V2, layout.MAGIC_BLANK)
)


class LogChangedError(FileStateError):
    """The log no longer holds what was read from it: it was cut, exchanged or written anew."""

    @classmethod
    def of(cls, cut: TruncatedFileError) -> LogChangedError:
        """The same for who goes on with what is left of the log."""
        what = cut.what if cut.expected is None else "the log was cut"
        return cls(what, path=cut.path, expected=cut.expected, got=cut.got)


class Chunk(NamedTuple):
    """Entries (`RUN_ENTRY`) and units (`UNIT`) of some messages, in the log's order; valid until the next chunk."""

    entries: npt.NDArray[Any]
    units: npt.NDArray[Any]


class _Last(NamedTuple):
    """The last frame of a growing log, [phy_offset, end), as it looked when it was first seen so."""

    phy_offset: int
    end: int
    crc: int
    first_look: float
    settles_after: float


class GrowingLog(Closable):
    """Reads a log from a frame's start on as far as it goes, again and again. For one thread.

    Parameters
    ----------
    directories : where the log's files are.
    phy_offset : where to begin; where the log begins later, there.
    tags : whether TAGS give entries. queues : the table that numbers the queues of units; None: no units.

    Attributes
    ----------
    phy_offset : after the last frame that was given.
    messages : how many were given. last_message : the phy offset of the last one; -1: none.
    more : whether the last `read` ended at its limit, and not at the log's end.
    damage : stretches of earlier files that hold no readable frames; they were skipped.
    """

    def __init__(
        self,
        directories: Sequence[str | os.PathLike[str]],
        phy_offset: int,
        *,
        tags: bool = False,
        queues: QueueTable | None = None,
    ) -> None:
        self.phy_offset = phy_offset
        self.messages = 0
        self.more = True
        self.damage: list[Damage] = []
        self._directories = list(directories)
        self._tags, self._queues = tags, queues
        self._file: LogFile | None = None
        self._map: MappedFile | None = None
        self._step: Extractor | None = None  # the last one, whose memory the next uses again
        self._identity = (0, 0)
        self._complete = False  # a later file holds frames: nothing more comes into this one
        self._reach = _NEAR
        self._last: _Last | None = None
        self._seal = (-1, -1, 0)
        self._looked = 0.0
        self.last_message = -1

    @property
    def waiting(self) -> bool:
        """True when a last frame was seen that counts as soon as it looks the same again."""
        return self._last is not None

    def read(self, stop: int | None = None) -> Iterator[Chunk]:
        """The next stretch of the log; afterwards `more` says whether another call may find something at once.

        To be followed to its end. `stop`: where the log is known to end; every frame before it is whole.

        Raises
        ------
        LogChangedError
        FileNotFoundError : the log's directory is gone.
        """
        self.more = False
        try:
            yield from self._read(stop)
        except TruncatedFileError as cut:
            raise LogChangedError.of(cut) from None

    def _read(self, stop: int | None) -> Iterator[Chunk]:
        if stop is None:
            self._check_seal()
            if self._rests():
                self.more = self._look()
                return
        if (stop is None or self.phy_offset < stop) and self._find_file(stop):
            before = self.phy_offset
            yield from self._walk(stop)
            self.more = self.phy_offset > before or self._pass_over(stop)
        if stop is None:
            self._set_seal()

    def _rests(self) -> bool:
        """Whether the log still ends where it was read up to: eight bytes show it, as long as nothing comes."""
        file, at = self._file, self.phy_offset
        if file is None or self._complete or not file.start <= at < file.stop or self._record_at(at):
            return False
        self._last, self._reach = None, _NEAR
        return True

    def settle(self) -> bool:
        """Whether another `read` may find more; waits the moment for which a last frame must stay as it is."""
        if self.waiting and not self.more:
            time.sleep(_PAUSE_SECONDS)
        return self.more or self.waiting

    def watch(self) -> None:
        """From now on what was read before `phy_offset` must stay as it is, though it was not read here."""
        self._find_file(None)
        self._set_seal()

    def require_unchanged(self) -> None:
        """`LogChangedError`, unless what was read last is as it was."""
        try:
            self._check_seal()
        except TruncatedFileError as cut:
            raise LogChangedError.of(cut) from None

    def lag(self) -> int:
        """About how many bytes of log follow `phy_offset`: up to where its files were ever written."""
        return read_again(self._lag)

    def _lag(self) -> int:
        files = [file for file in list_log_files(self._directories) if file.stop > self.phy_offset]
        if self._reach == _NEAR and self._file is not None and not self._complete:
            return 0  # the last look found the end
        last = last_file_with_frames(files)
        if last < 0:
            return 0
        return max(files[last].start + min(files[last].size, data_end(files[last].path)) - self.phy_offset, 0)

    def close(self) -> None:
        """Unmap; a later call maps again."""
        if self._map is not None:
            self._map.close()
        self._map = self._file = self._step = None

    # ---- one stretch of one file

    def _walk(self, stop: int | None) -> Iterator[Chunk]:
        file, log, at = self._file, self._open_map(), self.phy_offset
        assert file is not None
        whole = stop is not None or self._complete
        if not whole and not self._record_at(at):
            self._last, self._reach = None, _NEAR
            return
        reach = min(file.stop, at + (_REACH if whole else self._reach), file.stop if stop is None else stop)
        log.check()
        if reach - at >= _FAR and not self._complete:
            log.will_need(at - file.start, min(reach - file.start, file.size if whole else data_end(file.path)))
        if not whole and (reach := self._settled(at, reach)) == at:
            return
        step = self._step = Extractor(
            log.map, file.start, at, reach, tags=self._tags, check_crc=not whole, queues=self._queues, reuse=self._step
        )
        for found in step:
            entries = np.frombuffer(found, RUN_ENTRY)
            units = _NO_UNITS if self._queues is None else np.frombuffer(step.units, UNIT)
            if len(entries) or len(units):
                yield Chunk(entries, units)
        self.messages += step.messages
        self.last_message = max(self.last_message, step.last_message)
        self.phy_offset = step.end
        if whole or step.end < reach:
            self._last = None
        self._require_unchanged()

    def _settled(self, at: int, reach: int) -> int:
        """Up to where every frame is complete, so that it does not change while it is read from now on."""
        file, log = self._file, self._open_map().map
        assert file is not None
        last, end = last_record(log, file.start, at, reach)
        if end > last and (self._record_at(end) or self._is_blank(last)):
            self._last, self._reach = None, min(4 * self._reach, _REACH)
            return end
        self._reach = _NEAR
        if end > last and self._is_good(last, end):
            return end if self._stays(last, end) else last
        self._last = None
        return last

    def _is_good(self, at: int, end: int) -> bool:
        """Whether a good frame is there, its body's checksum included; a torn one may become good."""
        start = self._file.start if self._file is not None else 0
        walk = drained(Extractor(self._open_map().map, start, at, end, check_crc=True, queues=self._queues))
        return walk.messages == 1 and walk.end == end

    def _stays(self, at: int, end: int) -> bool:
        """The last frame looks as it did at an earlier look, and that was not just now."""
        crc, now, last = self._crc(at, end), time.monotonic(), self._last
        if last is not None and (last.phy_offset, last.end, last.crc) == (at, end, crc):
            return now - last.first_look >= last.settles_after
        self._last = _Last(at, end, crc, now, self._settles_after(at, end))
        return False

    def _require_unchanged(self) -> None:
        """Raise unless a last frame that was taken for complete is as before: else its entries and units are wrong."""
        last, file = self._last, self._file
        if last is None or file is None or last.phy_offset >= self.phy_offset:
            return
        self._last = None
        if self._crc(last.phy_offset, last.end) != last.crc:
            at = last.phy_offset - file.start
            raise LogChangedError("the log's last message was written while it was read", path=file.path, at=at)

    def _settles_after(self, at: int, end: int) -> float:
        """Seconds to wait. A frame is written from its front: one whose properties end in a zero byte may be torn."""
        log, start = self._open_map().map, self._file.start if self._file is not None else 0
        if log[end - start - 1] != 0:
            return SETTLE_SECONDS
        (frames,) = Scanner(log, start, at, end, max_frames=1)
        return _DOUBT_SECONDS if frames["properties_len"][0] > 0 else SETTLE_SECONDS

    def _record_at(self, at: int) -> bool:
        """Whether the head of a record is there, whatever follows it."""
        start = at - self._file.start if self._file is not None else 0
        head = self._open_map().map[start : start + 8]
        return head[:4] != b"\0\0\0\0" and head[4:] in _MAGICS

    def _is_blank(self, at: int) -> bool:
        start = at - self._file.start if self._file is not None else 0
        return self._open_map().map[start + 4 : start + 8] == _MAGICS[2]

    # ---- from file to file

    def _open_map(self) -> MappedFile:
        assert self._map is not None
        if self._map.map.cut or self._map.map.size() < self._map.size:
            raise LogChangedError("the log was cut", path=self._map.path, expected=self._map.size)
        return self._map

    def _find_file(self, stop: int | None) -> bool:
        """Map the file that holds `phy_offset`; False: it is not there yet.

        If a broker deletes the log's oldest files meanwhile, it is the first one that is left.
        """
        return read_again(lambda: self._look_for_file(stop))

    def _look_for_file(self, stop: int | None) -> bool:
        if self._file is not None and self._file.start <= self.phy_offset < self._file.stop:
            return True
        files = list_log_files(self._directories)
        later = [file for file in files if file.stop > self.phy_offset]
        if not later:
            if files and self.phy_offset > files[-1].stop:
                raise LogChangedError("the log was cut", path=files[-1].path, expected=self.phy_offset)
            return False
        if later[0].start > self.phy_offset and stop is None and last_file_with_frames(later) < 0:
            return False  # the file between may still come
        self._map_file(later)
        self.phy_offset = max(self.phy_offset, later[0].start)
        return True

    def _map_file(self, later: Sequence[LogFile]) -> None:
        self.close()
        self._map, self._file = later[0].open(), later[0]
        about = status_of(later[0].path)
        self._identity = about.st_dev, about.st_ino
        self._complete = last_file_with_frames(later[1:]) >= 0
        self._reach, self._seal = _NEAR, (-1, -1, 0)
        if not self._complete:  # a read ahead of the log's end fills the page cache with zeros, for milliseconds
            self._map.advise_random()

    def _pass_over(self, stop: int | None) -> bool:
        """Nothing can be read here: skip damage, or check whether the file is still the one that grows."""
        file = self._file
        assert file is not None
        if stop is None and not self._complete:
            return self._look()
        limit = file.stop if stop is None else min(stop, file.stop)
        at, log = self.phy_offset, self._open_map()
        fault = drained(Extractor(log.map, file.start, at, at + 1)).fault or (at, "truncated", None, None, None)
        self.damage.append(damage_of(fault, log, file.path, file.start, limit, limit))
        self.phy_offset = self.damage[-1].stop
        return True

    def _look(self) -> bool:
        """Now and then, check whether the log continues in another file; True: there is something to do."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return False
        self._looked = now
        return read_again(self._look_elsewhere)

    def _look_elsewhere(self) -> bool:
        file = self._file
        assert file is not None
        files = list_log_files(self._directories)
        same = [one for one in files if one.start == file.start]
        if not same:
            if files and files[0].start > file.start:  # it has expired: continue where the log begins
                self.phy_offset, self._last = max(self.phy_offset, files[0].start), None
                self.close()
                return True
            raise LogChangedError("a file of the log is gone", path=file.path)
        about = status_of(same[0].path)
        if (about.st_dev, about.st_ino) != self._identity:
            raise LogChangedError("a file of the log was exchanged", path=file.path)
        later = [one for one in files if one.start >= file.start]
        if same[0].size > file.size:
            self._map_file(later)
            return True
        self._complete = last_file_with_frames(later[1:]) >= 0
        return self._complete

    # ---- what was read must stay

    def _set_seal(self) -> None:
        if self._file is not None and self._seal[1] != self.phy_offset:
            start = max(self._file.start, self.phy_offset - _SEALED)
            self._seal = start, self.phy_offset, self._crc(start, self.phy_offset)

    def _check_seal(self) -> None:
        start, stop, crc = self._seal
        if self._file is not None and start >= 0 and self._crc(start, stop) != crc:
            raise LogChangedError("the log was written anew", path=self._file.path, at=start - self._file.start)

    def _crc(self, start: int, stop: int) -> int:
        first = self._file.start if self._file is not None else 0
        with memoryview(self._open_map().map) as whole, whole[start - first : stop - first] as some:
            return crc32c(some)
