"""Fixtures of the tests of clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .awaited import Face, awaited_clients


@pytest.fixture(scope="module", params=["blocking", "asyncio"])
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """Both faces of clients: a test that makes its clients by this one runs over both."""
    if request.param == "blocking":
        yield lambda kind: kind
    else:
        with awaited_clients() as faced:
            yield faced
