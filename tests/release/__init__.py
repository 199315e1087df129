"""Checks of released files: their content, and their use on machines with nothing but Python."""
