"""Fixtures of the tests of the protocol."""

from tests.broker.certificates import authority, stranger

__all__ = ["authority", "stranger"]
