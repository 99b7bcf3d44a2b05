"""Records of logs by partition, time, offset and key, as columns."""
