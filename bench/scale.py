"""How much work a run does. Everything scales together: keys, slots, entries, log and its files."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CHECK", "FULL", "SCALES", "Scale"]

GIB = 1 << 30
LEAST_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Scale:
    """`divisor`: how many times smaller than the full size; `timed`: whether rounds are repeated and warmed up."""

    name: str
    divisor: int
    timed: bool = True

    def count(self, full: int) -> int:
        """`full` things at this scale."""
        return max(1, full // self.divisor)

    def forks(self, full: int) -> int:
        """Processes of one contender; a check needs one."""
        return full if self.timed else 1

    def repeat(self, rounds: int, warmup: int) -> dict[str, object]:
        """Rounds in one process: so many at least, and `least` seconds of warm-up and of timed ones at least."""
        if not self.timed:
            return {"rounds": 1, "warmup": 0, "least": 0}
        return {"rounds": rounds, "warmup": warmup, "least": LEAST_SECONDS}

    @property
    def hash_slot_num(self) -> int:
        """Slots of the broker's default geometry."""
        return self.count(5_000_000)

    @property
    def index_num(self) -> int:
        """Entries of the broker's default geometry."""
        return self.count(20_000_000)

    @property
    def log_file_size(self) -> int:
        """Size of one commit-log file: 1 GiB, whole pages."""
        return self.count(GIB) // 4096 * 4096


FULL = Scale("full", 1)
CHECK = Scale("check", 2000, timed=False)
SCALES = {scale.name: scale for scale in (FULL, Scale("tenth", 10), Scale("hundredth", 100))}
