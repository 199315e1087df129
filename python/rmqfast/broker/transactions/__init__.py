"""Half messages: their ends, and checks of transactions that did not end."""
