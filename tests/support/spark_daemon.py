"""PySpark's daemon, which forks the workers of a session, with what they import loaded beforehand: for the tests.

A worker of a test lives for a moment, and most of that was importing. Tests of a cluster, of the shell and of packages
that workers lack are left with the daemon that users have.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

from tests.support.spark_archive import java_options

__all__ = ["preloading"]

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


def preloading() -> str:
    """Options of Spark's Java process; its workers must find this module."""
    return f"{java_options()} -Dspark.python.daemon.module={preloading.__module__}"


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
