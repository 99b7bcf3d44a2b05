"""What a repair of partitions does: planned, then done."""
