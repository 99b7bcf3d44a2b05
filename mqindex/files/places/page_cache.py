"""Pages of files elsewhere that this machine keeps, for all processes of a user; those used longest ago go first.

There is a sparse file for each version of a file elsewhere: the pages that were read, where they are in that one, and
behind its length a byte for each page.

```
pages   |▒▒▒|   |   |▒▒▒|▒▒▒|   |  1 0 0 1 1 0
          0   1   2   3   4   5     there
```

The byte is written when its page is, so that a process that is killed leaves nothing wrong. A restart of the machine
may leave one without the other: what an earlier one left is never used. Where something fails, as on a full disk or in
a directory of another user, there is no cache, and no error.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from mqindex.files.places.storage import Stat

PAGE: Final = 4096  # bytes of which it is known whether they were read
_MOST: Final = 8 << 30  # bytes on the disk
_SHARE: Final = 4  # and of what would be free without them
_TRIMMED: Final = 64 << 20  # bytes that a process writes before it looks how much there is
_OF_SPARK = re.compile(r"(blockmgr|executor|spark)-[0-9a-f-]+", re.ASCII)
_BOOT = "/proc/sys/kernel/random/boot_id"


class PageCache:
    """A directory of kept pages. For several threads and processes."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._written = _TRIMMED  # the first new file looks too

    def open(self, name: str, found: Stat) -> KeptPages | None:
        """What is kept of a version of a file; `name`: says which file, `found`: which version. None: no cache."""
        version = found.etag.strip('"') or found.changed
        if not version:
            return None
        import hashlib  # here: it loads much

        key = "\0".join((name, str(found.size), version))
        path = os.path.join(self._directory, hashlib.blake2b(key.encode(), digest_size=16).hexdigest())
        try:
            return KeptPages(self, path, found.size)
        except (OSError, ValueError):
            return None

    def note(self, written: int) -> None:
        """So many bytes were written."""
        self._written += written
        if self._written >= _TRIMMED:
            self._written = 0
            with contextlib.suppress(OSError):
                self._trim()

    def _trim(self) -> None:
        with os.scandir(self._directory) as entries:
            files = sorted((one.stat().st_mtime_ns, one.stat().st_blocks * 512, one.path) for one in entries)
        held = sum(size for _, size, _ in files)
        most = min(_MOST, (shutil.disk_usage(self._directory).free + held) // _SHARE)
        for _, size, path in files:
            if held <= most:
                break
            with contextlib.suppress(FileNotFoundError):  # another process does the same
                os.unlink(path)  # who uses it keeps it until then, and writes no more to it
            held -= size


class KeptPages:
    """The kept pages of one version of a file. `memory`: what is there of it, and zeros; writes to it stay here."""

    def __init__(self, cache: PageCache, path: str, size: int) -> None:
        self._cache, self._path, self._count = cache, path, -(-size // PAGE)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size != self._count * (PAGE + 1):
                os.ftruncate(fd, self._count * (PAGE + 1))  # of a new one; each that does so does the same
            private = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
            self.memory = mmap.mmap(fd, size, flags=private, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            self._number = os.fstat(fd).st_ino
            os.utime(fd)
        finally:
            os.close(fd)
        cache.note(0)

    def there(self) -> npt.NDArray[np.uint8]:
        """A byte for each page: whether it is in `memory`."""
        with contextlib.suppress(OSError), self._opened() as fd:
            found = np.frombuffer(os.pread(fd, self._count, self._count * PAGE), np.uint8)
            if len(found) == self._count:
                return found
        return np.zeros(self._count, np.uint8)

    def keep(self, start: int, data: Buffer) -> bool:
        """Write pages from byte `start` on, one's beginning; False: they are not in `memory`."""
        try:
            with self._opened() as fd, memoryview(data).cast("B") as rest:
                size, at = len(rest), 0
                while at < size:
                    at += os.pwrite(fd, rest[at:], start + at)
                os.pwrite(fd, b"\1" * -(-size // PAGE), self._count * PAGE + start // PAGE)
        except OSError:
            return False
        self._cache.note(size)
        return True

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """`OSError`: it had to go. Not kept open: there may be many files, and few descriptors."""
        fd = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_ino != self._number:
                raise FileNotFoundError(self._path)
            yield fd
        finally:
            os.close(fd)


def of_this_machine(directories: Sequence[str] = ()) -> PageCache | None:
    """The cache in the first of these directories, else in that for temporary files; None: there can be none.

    Of Spark's own directories it is beside them: they are of one executor each, and gone with it.
    """
    home = next(iter(directories), "") or tempfile.gettempdir()
    while _OF_SPARK.fullmatch(os.path.basename(home)):
        home = os.path.dirname(home)
    user = os.geteuid()
    try:
        with open(_BOOT, encoding="ascii") as file:
            boot = file.read().strip()
        ours = f"mqindex-pages-{user}-{re.sub('[^A-Za-z0-9.-]', '-', socket.gethostname())}-"
        directory = os.path.join(home, ours + boot)
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
            for name in os.listdir(home):
                if name.startswith(ours) and name != ours + boot:
                    shutil.rmtree(os.path.join(home, name), ignore_errors=True)
        found = os.lstat(directory)
    except OSError:
        return None
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return PageCache(directory) if safe else None
