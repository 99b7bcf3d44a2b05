"""What the commands do with RocketMQ's files."""
