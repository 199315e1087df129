"""What tools ask of messages, queues, groups and the broker as a whole."""
