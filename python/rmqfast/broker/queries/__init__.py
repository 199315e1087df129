"""Requests of administration tools about messages, queues, groups and the broker."""
