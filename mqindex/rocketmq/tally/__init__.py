"""What is counted for a health report in the pass of verify, without any read of its own."""
