"""What a broker's next start would do to a store."""
