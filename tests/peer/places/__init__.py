"""Stores, logs and indexes in an object store and on HDFS, both real servers."""
