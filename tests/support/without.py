"""A plugin for pytest: the packages of the variable MQINDEX_TEST_WITHOUT are as if they were not installed.

MQINDEX_TEST_WITHOUT=polars,pyspark pytest -p tests.support.without
"""

from __future__ import annotations

import os
import sys

for name in os.environ["MQINDEX_TEST_WITHOUT"].split(","):
    sys.modules[name] = None  # type: ignore[assignment]
