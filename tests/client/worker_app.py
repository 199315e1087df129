"""A web application and a task that each send what they are asked to, with a client of their worker's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from celery import Celery

import rmqfast

_ROOT = os.environ["CELERY_ROOT"]
_QUEUE = f"{_ROOT}/queue"
_FOLDERS = {"data_folder_in": _QUEUE, "data_folder_out": _QUEUE, "control_folder": f"{_ROOT}/control"}

app = Celery("tests.client.worker_app", broker="filesystem://", backend=f"file://{_ROOT}/results")
app.conf.broker_transport_options = _FOLDERS
app.conf.broker_connection_retry_on_startup = True


@cache
def producer_of(_pid: int) -> rmqfast.Producer:
    producer = rmqfast.Producer("workers")
    producer.start()
    return producer


@app.task  # type: ignore[untyped-decorator]  # Celery ships no types
def send(body: str) -> list[Any]:
    """How a send and an asynchronous one ended, and in which process."""
    producer = producer_of(os.getpid())
    message = rmqfast.Message("work", body.encode())
    ends = [producer.send(message), producer.send_async(message).result(60)]
    return [*(str(end.status) for end in ends), os.getpid()]


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """The same for a request of HTTP."""
    ends = send.run(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [" ".join(map(str, ends)).encode()]
