"""What a directory of a broker is as a whole: a store with its lock, what lies in RocksDB, or a wrong place."""
