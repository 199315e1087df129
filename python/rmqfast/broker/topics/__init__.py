"""The topics and consumer groups of a broker, with their settings."""
