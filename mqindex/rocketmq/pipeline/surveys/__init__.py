"""What the surviving files of a store tell about its settings."""
