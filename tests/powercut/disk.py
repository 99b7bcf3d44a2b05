"""An ext4 file system in an image on a loop device, whose power can be cut."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from pathlib import Path

__all__ = ["Disk", "why_not"]

_SIZE = 64 << 20
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_WITHOUT_THE_JOURNAL = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH
_NEEDED = ("mkfs.ext4", "mount", "umount", "unshare")


def why_not() -> str:
    """Why this machine has no such disk; empty: it has."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root may mount a file system"
    if missing := [name for name in _NEEDED if shutil.which(name) is None]:
        return f"not installed: {', '.join(missing)}"
    if not os.path.exists("/dev/loop-control"):
        return "there are no loop devices (/dev/loop-control)"
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    return f"no mount namespace may be made: {tried.stderr.strip()}" if tried.returncode else ""


class Disk:
    """One image, `root` when mounted. For a process in a mount namespace of its own: nothing of it outlives that.

    A cut is the file system's own (the ioctl that its developers test it with): from that moment on nothing more goes
    to the device, not what pages in memory hold, nor an open transaction of the journal, and every sync fails. What
    the image holds then is what the device was told, as after a power failure; the next mount replays the journal.
    """

    def __init__(self, place: Path) -> None:
        self.image, self.root = place / "image", place / "mounted"
        self.root.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(_SIZE)
        _command("mkfs.ext4", "-q", "-F", str(self.image))
        self.mount()

    def mount(self) -> None:
        _command("mount", "-o", "loop", str(self.image), str(self.root))

    def cut(self) -> None:
        """Nothing that is not on the disk now will be."""
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _SHUTDOWN, struct.pack("=I", _WITHOUT_THE_JOURNAL))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        _command("umount", str(self.root))

    def sync(self) -> None:
        """Everything is on the disk."""
        _command("sync", "-f", str(self.root))


def _command(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
