"""`python -m mqindex`: the `mqindex` command of exactly this Python."""

from __future__ import annotations

import sys

from mqindex.cli import main

if __name__ == "__main__":
    sys.exit(main())
