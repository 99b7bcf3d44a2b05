"""The cases, in the order in which they are run and printed. Each module says what it measures."""

from __future__ import annotations

from bench.case import Case
from bench.cases import (
    append,
    axes,
    bodies,
    cold,
    driver,
    extract,
    follow,
    get_message,
    kafka_append,
    kafka_lookup,
    kafka_rebuild,
    kafka_spark,
    kafka_verify,
    key_stores,
    optimize,
    places,
    places_counted,
    places_lookup,
    places_spark,
    plain_spark,
    private_memory,
    put_keys,
    rebuild,
    report,
    reput,
    select_phy_offsets,
    single_calls,
    spark_column,
    spark_engine,
    start,
    verify,
    workers,
)

__all__ = ["CASES"]

CASES: dict[str, Case] = {
    module.CASE.name: module.CASE
    for module in (
        put_keys,
        select_phy_offsets,
        single_calls,
        optimize,
        cold,
        start,
        spark_column,
        key_stores,
        extract,
        rebuild,
        workers,
        spark_engine,
        append,
        get_message,
        bodies,
        reput,
        follow,
        verify,
        report,
        axes,
        private_memory,
        places,
        places_counted,
        places_spark,
        places_lookup,
        driver,
        plain_spark,
        kafka_lookup,
        kafka_append,
        kafka_rebuild,
        kafka_verify,
        kafka_spark,
    )
}
