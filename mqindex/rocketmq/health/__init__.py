"""What a health report says of a store, made from what verify found and counted."""
