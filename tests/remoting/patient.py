"""Clients of tests wait as long as tests wait, unless a test says how long; see `tests/waiting.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast.remoting import Connections, RemotingClient
from tests.waiting import PATIENCE

_TIMEOUTS = {
    RemotingClient.__init__: "timeout",
    Connections.__init__: "connect_timeout",
    Connections.request: "timeout",
    Connections.control: "timeout",
    Connections.submit: "timeout",
}


@pytest.fixture(scope="module", autouse=True)
def patient_clients() -> Iterator[None]:
    """Three seconds, the default of most, may pass on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        for method, name in _TIMEOUTS.items():
            defaults = method.__kwdefaults__ or {}
            assert defaults[name] == 3.0
            patch.setitem(defaults, name, PATIENCE)
        yield
