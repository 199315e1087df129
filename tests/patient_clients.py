"""Has the clients of tests wait for answers as long as tests wait: `PATIENCE`, see `tests/waiting.py`.

A request gives up after three to ten seconds, unless it is told otherwise. That is right for people, and too little on
a machine that is busy with something else. A timeout of a second or less is one that a test has chosen: it stays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction, unwrap
from typing import Any

from rmqfast import Producer, TransactionProducer, aio
from rmqfast.broker.registration import registrar
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer.producer import SEND_TIMEOUT
from rmqfast.remoting import Connections, RemotingClient
from tests.waiting import PATIENCE

_LONGEST_CHOSEN = 1.0
#: Methods that wait, and the name of the timeout of each.
_WAITS: dict[type, dict[str, str]] = {
    RemotingClient: {"__init__": "timeout"},
    Connections: {"__init__": "connect_timeout", "request": "timeout", "control": "timeout", "submit": "timeout"},
}


def make_patient() -> None:
    """Changes the clients of this process, and how long a broker of it waits for a name server."""
    registrar._PATIENCE = PATIENCE  # noqa: SLF001 - no argument reaches it
    unwrap(ClientConfig.__init__).__kwdefaults__["request_timeout"] = PATIENCE
    for kind, methods in _WAITS.items():
        for method, timeout in methods.items():
            setattr(kind, method, _patient(getattr(kind, method), timeout))
    for producer in (Producer, TransactionProducer, aio.Producer, aio.TransactionProducer):
        for function in filter(isfunction, vars(producer).values()):
            function.__defaults__ = _longer(function.__defaults__)


def _patient(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(method)
    def waits(*args: Any, **named: Any) -> Any:
        timeout = named.get(name, PATIENCE)
        return method(*args, **named | {name: timeout if timeout <= _LONGEST_CHOSEN else max(timeout, PATIENCE)})

    return waits


def _longer(defaults: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """The defaults of a method of a producer, one of which may be how long a send takes at most."""
    return defaults and tuple(PATIENCE if value is SEND_TIMEOUT else value for value in defaults)
