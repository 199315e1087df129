"""Figures of the broker, its store, its groups."""
