"""PySpark's daemon, which forks the workers of a session, with what they import loaded beforehand: for the tests.

A worker of a test lives for a moment, and most of that was importing. Only the session that tests/spark shares has it.
Those that the cluster, tests/cli and the documents start have the daemon that users have: there it is seen if something
does not import what it needs.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

__all__ = ["OPTION"]

OPTION = "-Dspark.python.daemon.module=tests.support.spark_daemon"  # of Java; the workers must find this module
MODULES = (
    "numpy",
    "pyarrow.compute",
    "pandas",
    "pyspark.worker",
    "pyspark.sql.connect.conversion",
    "pyspark.sql.datasource",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.worker.plan_data_source_read",
    "mqindex.kafka",
    "mqindex.rocketmq",
    "mqindex.spark.engine",
    "mqindex.spark.functions.column_functions",
    "mqindex.spark.sources.register",
)


def main() -> None:
    """Load, and be PySpark's daemon."""
    from pyspark.daemon import manager

    for name in MODULES:
        with suppress(ImportError):  # workers that lack it say so themselves
            import_module(name)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
