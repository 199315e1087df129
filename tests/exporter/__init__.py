"""Tests of `rmqfast.exporter`."""
