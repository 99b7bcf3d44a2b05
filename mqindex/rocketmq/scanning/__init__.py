"""Messages of a log by topic, time, place, key and tag, as columns."""
