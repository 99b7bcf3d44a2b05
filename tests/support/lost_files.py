"""Files of a store that a test removes and damages, kind by kind, and brings back."""

from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path
from typing import Any

from tests.support.nightly import NIGHTLY

__all__ = ["Lost", "below"]

STATES = ("whole", "removed", "damaged")
SAMPLE = 4  # combinations; at night all of them


class Lost:
    """Files that are whole, removed or damaged, kind by kind; zone maps also those of one another."""

    def __init__(self, rng: random.Random, cache: Path, **kinds: list[Path]) -> None:
        self._rng, self._cache = rng, cache
        files = {kind: [file for path in paths for file in below(path)] for kind, paths in kinds.items()}
        self._files = {kind: {file: file.read_bytes() for file in found} for kind, found in files.items()}
        self._files["zones"] = {file: file.read_bytes() for file in below(cache)}

    def combinations(self) -> Any:
        """Bring about one after the other."""
        found = list(itertools.product(*([*STATES, "exchanged"][: 4 if k == "zones" else 3] for k in self._files)))
        for states in found if NIGHTLY else self._rng.sample(found, SAMPLE):
            shutil.rmtree(self._cache, ignore_errors=True)
            for files, state in zip(self._files.values(), states, strict=True):
                self._bring(files, state)
            yield dict(zip(self._files, states, strict=True))

    def _bring(self, files: dict[Path, bytes], state: str) -> None:
        others = list(files.values())
        others = others[1:] + others[:1] if state == "exchanged" else others
        for (file, data), other in zip(files.items(), others, strict=True):
            file.unlink(missing_ok=True)
            if state != "removed":
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(self._damaged(data) if state == "damaged" else other)

    def _damaged(self, data: bytes) -> bytes:
        at = self._rng.randrange(len(data) + 1)
        return self._rng.choice((data[:at], data[:at] + self._rng.randbytes(8) + data[at + 8 :], bytes(len(data))))


def below(path: Path) -> list[Path]:
    return sorted(file for file in [path, *path.rglob("*")] if file.is_file())
