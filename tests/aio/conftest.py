"""Fixtures of the tests of asyncio clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running
