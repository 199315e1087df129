"""Sends rows of a DataFrame as messages to a topic. Tasks send batches, and each row is stored at least once."""
