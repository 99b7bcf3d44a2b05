"""Which units a tally keeps: one of each `every`, at random, by Steele, Lea and Flood's SplitMix64."""

from __future__ import annotations

__all__ = ["chosen_units"]

_64 = (1 << 64) - 1


def chosen_units(count: int, every: int, seed: int) -> list[int]:
    """Numbers of the units of `count` that are kept."""
    chosen, state = [], seed
    for group in range(0, count, every):
        state = (state + 0x9E3779B97F4A7C15) & _64
        mixed = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & _64
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _64
        number = group + (((mixed ^ mixed >> 31) >> 32) * every >> 32)
        if number < count:
            chosen.append(number)
    return chosen
