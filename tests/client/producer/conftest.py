"""Fixtures of the tests of producers."""

from __future__ import annotations

import pytest

from rmqfast.client.producer import Producer
from tests.client.awaited import Face


@pytest.fixture(scope="module")
def make(face: Face) -> type[Producer]:
    """What makes a producer."""
    return face(Producer)
