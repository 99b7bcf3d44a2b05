"""The requests of a broker's clients: messages read from a store, and put into it."""
