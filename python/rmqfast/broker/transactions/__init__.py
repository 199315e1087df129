"""Half messages: how they end, and who is asked where they do not."""
