"""The HTTP server of metrics: what it answers, and what it withstands."""

from __future__ import annotations

import gzip
import http.client
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from rmqfast.errors import RemotingError
from rmqfast.metrics.server import MOST_CLIENTS, MetricsServer
from tests.waiting import until


class Collected:
    """Metrics that count how often they are collected, and fail while told to, or if two collect them at once."""

    def __init__(self) -> None:
        self.times, self.fails = 0, False
        self._busy = threading.Lock()

    def __call__(self) -> str:
        assert self._busy.acquire(blocking=False)
        try:
            self.times += 1
            if self.fails:
                raise ValueError(self.times)
            return f"times {self.times}\n"
        finally:
            self._busy.release()


@pytest.fixture
def collected() -> Collected:
    return Collected()


@pytest.fixture
def server(collected: Collected) -> Iterator[MetricsServer]:
    with MetricsServer(collected, port=0) as running:
        yield running


class Answered(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def asked(server: MetricsServer, path: str, **headers: str) -> Answered:
    connection = http.client.HTTPConnection(server.address, timeout=30)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        with connection.getresponse() as answer:
            return Answered(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def test_it_answers_only_at_its_path(server: MetricsServer) -> None:
    answer = asked(server, "/metrics?x=1")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert answer.body == b"times 1\n"
    assert (asked(server, "/").status, asked(server, "/metrics/../etc").status) == (404, 404)


def test_it_compresses_for_those_who_take_it(server: MetricsServer) -> None:
    answer = asked(server, "/metrics", Accept_Encoding="deflate, gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.body) == b"times 1\n"


def test_metrics_are_collected_by_one_at_a_time(server: MetricsServer, collected: Collected) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: asked(server, "/metrics"), range(40)))
    assert {answer.status for answer in answers} == {200}
    assert 1 <= collected.times <= 40


def test_a_failure_is_told_and_passes(
    server: MetricsServer, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    collected.fails = True
    with caplog.at_level(logging.ERROR, "rmqfast"):
        answer = asked(server, "/metrics")
    assert (answer.status, answer.body) == (500, b"the metrics could not be read: the log says why\n")
    assert "ValueError: 1" in caplog.text
    collected.fails = False
    assert asked(server, "/metrics").body == b"times 2\n"


@pytest.mark.parametrize(
    "data", [b"\x00" * 100, b"GET " + b"/" * 70_000, b"POST /metrics HTTP/1.1\r\n\r\n", b"GET / HTTP/9\r\n\r\n"]
)
def test_garbage_ends_nothing(server: MetricsServer, data: bytes) -> None:
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    assert asked(server, "/metrics").status == 200


def test_more_connections_than_it_has_threads_for_are_closed(server: MetricsServer) -> None:
    host, port = server.address.split(":")
    with ExitStack() as stack:
        for _ in range(MOST_CLIENTS):
            # Who begins a request and says no more keeps a thread, for a while.
            stack.enter_context(socket.create_connection((host, int(port)), timeout=30)).sendall(b"GET ")
        with socket.create_connection((host, int(port)), timeout=30) as one_more:
            assert one_more.recv(1) == b""
    until(lambda: answers(server))


def answers(server: MetricsServer) -> bool:
    try:
        return asked(server, "/metrics").status == 200
    except (OSError, http.client.HTTPException):
        return False


def test_a_port_in_use_is_named(server: MetricsServer) -> None:
    with pytest.raises(RemotingError, match=rf"metrics at {server.address}: Address already in use"):
        MetricsServer(str, port=int(server.address.split(":")[1]))


def test_a_closed_server_has_given_its_port_back(collected: Collected) -> None:
    server = MetricsServer(collected, port=0)
    server.close()
    server.close()
    MetricsServer(collected, port=int(server.address.split(":")[1])).close()
