"""What a broker's clients ask a store for, and put into it."""
