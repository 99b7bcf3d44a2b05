"""What the commands do with Kafka's files."""
