"""Requests of tools about messages, queues, groups and the broker."""
