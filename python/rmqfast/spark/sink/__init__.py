"""Sends rows of a DataFrame as messages to a topic: tasks send batches, and each row is stored at least once."""
