"""Fixtures of the tests of producers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast.client.producer import Producer

from .producers import Make, awaited_producers


@pytest.fixture(scope="module", params=["blocking", "asyncio"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """What makes a producer: a blocking one, or one of asyncio whose calls are waited for."""
    if request.param == "blocking":
        yield Producer
    else:
        with awaited_producers() as maker:
            yield maker
