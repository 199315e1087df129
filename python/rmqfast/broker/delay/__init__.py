"""Delayed messages, which wait until they are due."""
