"""Attacks on a broker by a stranger or by too many clients, and one table of their results."""
