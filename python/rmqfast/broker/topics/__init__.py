"""Topics and consumer groups, as they are configured."""
