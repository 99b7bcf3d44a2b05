"""Against the bytes and the answers of real brokers (`tests/data`)."""
