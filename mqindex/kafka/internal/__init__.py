"""What brokers keep in topics of their own: commits of groups, transactions, markers, and the cluster's metadata."""
