"""Benchmarks: each number a ratio of contenders measured side by side, recorded, and printed from its record."""
