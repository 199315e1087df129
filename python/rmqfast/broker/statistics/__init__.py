"""Statistics of the broker, its store and its groups."""
