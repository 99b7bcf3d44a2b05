"""Zone maps: which stretches of a log can hold messages of a period or a topic, kept in a cache between runs."""
