"""Rows of a DataFrame as messages of a topic: batches sent by tasks, each row at least once."""
