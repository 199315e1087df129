"""The name server behind a port."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast.errors import ArgumentError, CorruptError, RemotingError, ResponseError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.nameserver import server as server_module
from rmqfast.remoting import Channel, RemotingClient, Request
from tests.nameserver.conftest import Clock
from tests.nameserver.registration import body, identity, topic
from tests.waiting import PATIENCE, until


class Counting(NameServer):
    """Counts the connections whose end it has been told of."""

    ended = 0

    def channel_closed(self, channel: Channel) -> None:
        super().channel_closed(channel)
        self.ended += 1


@pytest.fixture
def running(config: NamesrvConfig, clock: Clock) -> Iterator[Counting]:
    config.listen_port = 0
    with Counting(config, now=clock) as server:
        yield server


def test_a_broker_is_forgotten_when_its_connection_ends(running: Counting) -> None:
    with RemotingClient(running.address) as client:
        with RemotingClient(running.address) as broker:
            broker.ask(103, identity(), body(topic("t")))
            assert client.ask(206).body == b'{"topicList":["t"]}'
        until(lambda: client.ask(206).body == b'{"topicList":[]}')


def test_silent_brokers_are_looked_for_now_and_then(
    config: NamesrvConfig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "FIRST_SCAN", 0.01)
    monkeypatch.setattr(server_module, "SCAN_INTERVAL", 0.01)
    config.listen_port = 0
    with Counting(config, now=clock) as server, RemotingClient(server.address) as broker:
        broker.ask(103, identity(), body(topic("t")))
        looks = clock.looks
        until(lambda: clock.looks >= looks + 3)  # scans go on, and those before the last are over
        assert server.routes.all_topics() == ["t"]
        clock.now += 120_001
        until(lambda: server.routes.all_topics() == [] and server.ended == 1)


def test_who_may_not_ask_is_told_so(config: NamesrvConfig) -> None:
    def check(request: Request) -> None:
        raise ResponseError(1, f"not {request.code}")

    config.listen_port = 0
    with NameServer(config, check=check) as server, RemotingClient(server.address) as client:
        assert client.request(206).remark == "not 206"


def test_it_serves_until_it_is_stopped(config: NamesrvConfig) -> None:
    config.listen_port = 0
    server = NameServer(config)
    assert server.address == ""
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    until(lambda: server.address != "")
    with RemotingClient(server.address) as client:
        client.ask(206)
    server.stop()
    server.stop()
    serving.join(PATIENCE)
    assert not serving.is_alive()
    with pytest.raises(RemotingError):
        RemotingClient(server.address).ask(206)
    with pytest.raises(ArgumentError, match="started once"):
        server.start()


def test_an_interrupt_ends_the_serving(config: NamesrvConfig) -> None:
    config.listen_port = 0
    server = NameServer(config)
    here = threading.get_ident()

    def interrupt() -> None:
        until(lambda: server.address)
        signal.pthread_kill(here, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        server.serve_forever()
    server.stop()


def test_a_port_that_is_taken_is_an_error(running: Counting, config: NamesrvConfig) -> None:
    config.listen_port = int(running.address.rpartition(":")[2])
    with pytest.raises(RemotingError):
        NameServer(config).start()


def test_texts_that_cannot_be_read_are_an_error(config: NamesrvConfig) -> None:
    Path(config.kv_config_path).write_text("{")
    with pytest.raises(CorruptError):
        NameServer(config)
