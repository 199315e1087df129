"""Fixtures of the tests of the protocol."""

from .patient import patient_clients

__all__ = ["patient_clients"]
