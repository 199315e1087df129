"""Fixtures of the tests of producers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast import aio
from rmqfast.client.producer import Producer
from tests.client.awaited import awaited_clients


@pytest.fixture(scope="module", params=["blocking", "asyncio"])
def make(request: pytest.FixtureRequest) -> Iterator[type[Producer]]:
    """What makes a producer: a blocking one, or one of asyncio whose calls are waited for."""
    if request.param == "blocking":
        yield Producer
    else:
        with awaited_clients(aio.Producer, Producer) as maker:
            yield maker
