"""Tests of `rmqfast.metrics`, and of what servers tell with it."""
