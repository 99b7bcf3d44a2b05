"""What a partition's directory and a log dir hold: segments, checkpoints, producers' snapshots, topics' settings."""
