"""What a health report says of partitions, made from what verify found and counted."""
