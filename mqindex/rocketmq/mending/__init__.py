"""What a repair of a store does: the index, the consume queues."""
