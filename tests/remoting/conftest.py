"""Fixtures of the tests of the protocol."""

from .patient import patient_clients as patient_clients
