"""Pulling, for every consumer: which queues, from which broker, and one pull at a time where that is what is wanted."""
