"""Lines of a log that strangers cause."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from rmqfast.remoting import RemotingServer
from rmqfast.remoting.rate_limit import LogLimit
from tests.waiting import PATIENCE, until


class Clock:
    """A time that is set, and what is to be done at a later one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.later: list[Callable[[], object]] = []

    def remember(self, _seconds: float, work: Callable[[], object]) -> None:
        self.later.append(work)


def test_a_flood_is_some_lines_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    clock, logger = Clock(), logging.getLogger("rmqfast.of_a_test")
    logger.addFilter(LogLimit(lambda: clock.now, clock.remember))
    for number in range(1000):
        logger.warning("connection %d ended", number)
        logger.error("another text")
    first = [record.getMessage() for record in caplog.records[:3]]
    assert first == ["connection 0 ended", "another text", "connection 1 ended"]
    assert len(caplog.records) == 2 * 20
    clock.now = 2.0
    logger.warning("connection %d ended", 1000)
    assert caplog.records[-1].getMessage() == "connection 1000 ended (980 like it were left out)"
    for work in clock.later:
        work()
    assert caplog.records[-1].getMessage() == "980 lines were left out like this one: another text"
    assert caplog.records[-1].levelno == logging.ERROR
    assert len(caplog.records) == 2 * 20 + 2


def test_bad_connections_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with RemotingServer({}) as server:
        host, _, port = server.listen("127.0.0.1:0").rpartition(":")
        for _ in range(300):
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as bad:
                bad.sendall(b"\xff" * 8)
                with suppress(ConnectionError):
                    bad.recv(1)
        until(lambda: server.connections == 0)
    assert 20 <= len(caplog.records) < 150
