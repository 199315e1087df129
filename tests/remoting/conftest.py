"""Fixtures of the tests of the protocol."""

from tests.broker.certificates import authority, stranger

from .patient import patient_clients

__all__ = ["authority", "patient_clients", "stranger"]
