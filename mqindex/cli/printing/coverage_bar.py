"""How much of a line is covered, as a bar of characters."""

from __future__ import annotations

import sys

_WIDEST_BAR, _BESIDE_THE_BAR = 60, 34  # columns
_CELLS, _PLAIN_CELLS = "░▒█", ".+#"  # nothing, some, all of a cell is covered


def coverage_bar(stretches: list[list[int]], begin: int, end: int) -> str:
    """How much of a line is covered, a cell for each part of it; on a terminal only."""
    if not sys.stdout.isatty():
        return ""
    import shutil  # loads three compressors, which are useless in a pipe

    cells = max(4, min(_WIDEST_BAR, shutil.get_terminal_size().columns - _BESIDE_THE_BAR))
    signs = _CELLS if _can_write(_CELLS) else _PLAIN_CELLS
    bar = ""
    for cell in range(cells):
        low, high = (begin + (end - begin) * edge / cells for edge in (cell, cell + 1))
        covered = sum(max(min(stop, high) - max(start, low), 0) for start, stop in stretches)
        share = covered / (high - low) if high > low else 0.0
        bar += signs[2 if share > 0.99 else 1 if share > 0.01 else 0]
    return f"{bar}  "


def _can_write(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
