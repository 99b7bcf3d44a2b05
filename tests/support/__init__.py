"""What tests need besides pytest: golden stores, writers of logs, ways to break things."""
