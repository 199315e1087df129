"""Configured topics and consumer groups of a broker."""
