"""An index file that another program changes while it is sorted: told, or sorted as it was at some moment."""

from __future__ import annotations

from pathlib import Path

from tests.support.own_process import run_apart

SORT_WHILE_IT_CHANGES = """
    import mmap, random, struct, sys, threading
    import numpy as np
    from mqindex.errors import FileStateError
    from mqindex._native.index_file import IndexCore
    from mqindex._native.index_sort import sort_into

    slots, steady, moving = 65536, 1_450_000, 150_000  # more in one stretch than its buffer has room for
    entries = steady + moving + 1
    size = 40 + 4 * slots + 20 * entries
    with open(sys.argv[1], "w+b") as file:
        file.truncate(size)
        mapped = mmap.mmap(file.fileno(), size)
    rows = np.frombuffer(mapped, [("hash", ">i4"), ("rest", "V16")], offset=40 + 4 * slots)
    rows["hash"][1 : steady + 1] = slots - 64
    mapped[36:40] = struct.pack(">i", entries)
    near, over = (slots - 63 + np.arange(moving) * 60 // moving).astype(">i4"), threading.Event()

    def change():
        some = random.Random(1)
        while not over.is_set():
            over.wait(some.random() * 0.02)
            rows["hash"][steady + 1 :] = near
            over.wait(some.random() * 0.01)
            rows["hash"][steady + 1 :] = 0

    changing = threading.Thread(target=change)
    changing.start()
    ends = set()
    for _ in range(60):
        source, target = IndexCore(mapped, slots, entries, False), IndexCore(mmap.mmap(-1, size), slots, entries, True)
        try:
            sort_into(source, target)
            ends.add("sorted")
        except FileStateError:
            ends.add("told")
        source.close(), target.close()
    over.set()
    changing.join()
    print(sorted(ends))
"""


def test_a_stretch_that_is_read_again_and_has_changed(tmp_path: Path) -> None:
    """Its slots led behind the end of the new file."""
    assert "told" in run_apart(SORT_WHILE_IT_CHANGES, tmp_path / "index")
