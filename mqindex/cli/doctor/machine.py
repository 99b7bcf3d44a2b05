"""Locale, limits of this process, and the file systems of the current and the temporary directory."""

from __future__ import annotations

import codecs
import os
import resource
import sys
import tempfile
from collections.abc import Iterator

from mqindex.cli.doctor.line import Line
from mqindex.wording.text import size

FEWEST_FILES = 1024
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre", "afs"}
LARGEST_FILE = 1 << 30  # bytes of a file of a commit log; an index file has 420 MB


def locale() -> Iterator[Line]:
    """Whether names and keys can be written as they are."""
    names, output = (codecs.lookup(name).name for name in (sys.getfilesystemencoding(), sys.stdout.encoding or "ascii"))
    found = f"file names in {names}, output in {output}"
    if {names, output} == {"utf-8"}:
        yield Line("works", "locale", found)
    else:
        advice = r"what is not ASCII in keys and names is printed as \xe9: set LC_ALL=C.UTF-8"
        yield Line("limited", "locale", found, advice)


def limits() -> Iterator[Line]:
    """Open files, address space and the size of a file."""
    files, address, largest = (
        resource.getrlimit(number)[0] for number in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_FSIZE)
    )
    if files != resource.RLIM_INFINITY and files < FEWEST_FILES:
        yield Line("limited", "open files", f"at most {files}", f"large stores need more: ulimit -n {4 * FEWEST_FILES}")
    else:
        yield Line("works", "open files", "no limit" if files == resource.RLIM_INFINITY else f"at most {files}")
    if address != resource.RLIM_INFINITY:
        advice = "logs and indexes are mapped, and a larger one will not fit: ulimit -v unlimited"
        yield Line("limited", "address space", size(address), advice)
    else:
        yield Line("works", "address space", "no limit")
    if largest != resource.RLIM_INFINITY and largest < LARGEST_FILE:
        advice = "an index file of the default geometry is 420 MB, a file of a log 1 GiB: ulimit -f unlimited"
        yield Line("limited", "size of a file", size(largest), advice)


def places() -> Iterator[Line]:
    """The current directory, and the one for temporary files where it is on another file system."""
    here = os.getcwd()
    yield _place("current directory", here)
    try:
        temporary = tempfile.gettempdir()
    except FileNotFoundError as error:
        yield Line("limited", "temporary files", str(error), "Spark needs such a place: set TMPDIR")
        return
    if os.stat(temporary).st_dev != os.stat(os.curdir).st_dev:  # a directory above `here` may not be accessible
        yield _place("temporary files", temporary)


def _place(about: str, directory: str) -> Line:
    from mqindex.files.probe import probe

    try:
        tried = probe(directory)
    except OSError as error:
        advice = "stores there can be read and verified; `repair` and `rebuild` cannot write there"
        return Line("limited", about, f"{directory}: {error.strerror}", advice)
    kind = tried.file_system or "a file system of unknown type"
    found = f"{directory}: {kind}, {'no size' if tried.free is None else f'{size(tried.free)} free'}"
    bad = []
    if tried.reserved and not tried.mapped:
        bad.append("files cannot be mapped to be written: only read stores here")
    if not (tried.flock and tried.record_locks):
        bad.append("there are no locks: nothing keeps two writers, or a broker and `repair`, apart")
    if not tried.reserved:
        bad.append("space cannot be reserved: nothing can be built here")
    if not tried.sparse:
        bad.append("there are no sparse files: logs of a broker take their full length")
    if kind in NETWORK or kind.startswith("fuse"):
        bad.append("a network file system: many small reads are slow, and a broker on another machine may not be seen")
    return Line("limited" if bad else "works", about, found, "; ".join(bad))
