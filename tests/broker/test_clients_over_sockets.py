"""The control plane of clients behind a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast.remoting import RemotingServer
from rmqfast.remoting.fastjson import decode
from tests.waiting import PATIENCE, until

from .client_control import Control
from .socket_client import SocketClient
from .test_client_processor import heartbeat


@pytest.fixture
def control(tmp_path: Path) -> Control:
    return Control(tmp_path)


@pytest.fixture
def address(control: Control) -> Iterator[str]:
    with RemotingServer(control.processors, closed=control.clients.on_closed) as server:
        yield server.listen("127.0.0.1:0")


def test_a_newcomer_and_who_is_there_are_told_and_who_stays_when_one_is_killed(address: str) -> None:
    with SocketClient(address) as stays:
        assert stays.ask(34, heartbeat("g", client_id="stays"))[0]["code"] == 0
        assert stays.notices.get(timeout=PATIENCE) == "g"
        killed = SocketClient(address)
        assert killed.ask(34, heartbeat("g", client_id="killed"))[0]["code"] == 0
        assert stays.notices.get(timeout=PATIENCE) == killed.notices.get(timeout=PATIENCE) == "g"
        assert decode(stays.ask(38, consumerGroup="g")[1]) == {"consumerIdList": ["stays", "killed"]}
        killed.close()
        assert stays.notices.get(timeout=PATIENCE) == "g"
        assert decode(stays.ask(38, consumerGroup="g")[1]) == {"consumerIdList": ["stays"]}
        (seen,) = decode(stays.ask(203, consumerGroup="g")[1])["connectionSet"]
        assert seen["clientAddr"] == stays.address
        with SocketClient(address) as last:
            last.ask(34, heartbeat("g", client_id="last"))
            assert stays.notices.get(timeout=PATIENCE) == last.notices.get(timeout=PATIENCE) == "g"
            stays.ask(38, consumerGroup="g")
            assert stays.notices.empty(), "of each change it is told once"


def test_a_consumer_is_asked_while_others_are_served(address: str) -> None:
    info = b'{"properties":{"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"}}'
    with SocketClient(address, {307: lambda *_: info}, version=399) as consumer, SocketClient(address) as admin:
        consumer.ask(34, heartbeat("g"))
        header, body = admin.ask(307, consumerGroup="g", clientId="c", jstackEnable="false")
        assert (header["code"], header["version"], body) == (0, 399, info)
        fields = {"consumerGroup": "g", "clientId": "c", "jstackEnable": "false"}
        assert consumer.asked.get(timeout=PATIENCE) == (307, fields, b"")
        header, _ = admin.ask(307, consumerGroup="g", clientId="x")
        assert (header["code"], header["remark"]) == (1, "The Consumer <g> <x> not online")


def test_a_hundred_come_and_go_and_nothing_is_left(address: str, control: Control) -> None:
    clients = [SocketClient(address) for _ in range(100)]
    for number, client in enumerate(clients):
        assert client.ask(34, heartbeat(f"g{number % 4}", client_id=f"c{number}", producers=("p",)))[0]["code"] == 0
    assert sum(len(control.consumers.client_ids(f"g{number}")) for number in range(4)) == 100
    for client in clients:
        client.close()
    until(lambda: not (control.consumers.names() or control.producers.table() or control.tables.online))
