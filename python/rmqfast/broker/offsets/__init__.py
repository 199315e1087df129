"""Consumer offsets."""
