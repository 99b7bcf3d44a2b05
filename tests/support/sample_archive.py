"""Writes what `mqindex sample` unpacks, from the golden cases: `python -m tests.support.sample_archive`."""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from pathlib import Path

import mqindex
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase

ARCHIVE = Path(mqindex.__file__).parent / "cli" / "sample" / "sample.tar.gz"


def contents() -> dict[str, bytes | None]:
    """Name -> content of every file, None of a directory, in the archive's order."""
    with tempfile.TemporaryDirectory() as scratch:
        roots = {
            "store": case("killed-lost-493").unpack_after(Path(scratch)),
            "orders-0": PartitionCase("410-plain-mono").closed(Path(scratch)),
        }
        found: dict[str, bytes | None] = {}
        for top, root in roots.items():
            found[top] = None
            for path in sorted(root.rglob("*")):
                if path.suffix != ".timeindex":
                    name = f"{top}/{path.relative_to(root)}"
                    found[name] = None if path.is_dir() else path.read_bytes()
    return found


def archive() -> bytes:
    """The same bytes at every run."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in contents().items():
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            member.mode, member.size = (0o755, 0) if content is None else (0o644, len(content))
            tar.addfile(member, None if content is None else io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


if __name__ == "__main__":
    ARCHIVE.write_bytes(archive())
