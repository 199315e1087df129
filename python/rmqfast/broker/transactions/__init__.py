"""Half messages: ends their transactions, and asks producers about transactions that did not end."""
