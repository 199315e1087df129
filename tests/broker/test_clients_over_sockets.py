"""The control plane of clients behind a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast.broker.clients import client_call_processor
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingServer
from rmqfast.remoting.fastjson import decode, encode
from rmqfast.store.config import TopicConfig
from tests.waiting import PATIENCE, until

from .client_control import Control
from .client_doubles import StoreOfFiles
from .socket_client import SocketClient
from .test_client_processor import heartbeat


@pytest.fixture
def store(golden_store: Callable[[str], Path]) -> Path:
    return golden_store("offsets-4.9.4")


@pytest.fixture
def control(tmp_path: Path, store: Path) -> Control:
    return Control(tmp_path, StoreOfFiles(store))


@pytest.fixture
def address(control: Control) -> Iterator[str]:
    with RemotingServer(control.processors, closed=control.clients.closed) as server:
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
        with SocketClient(address) as last:
            last.ask(34, heartbeat("g", client_id="last"))
            assert stays.notices.get(timeout=PATIENCE) == last.notices.get(timeout=PATIENCE) == "g"
            stays.ask(38, consumerGroup="g")
            assert stays.notices.empty(), "of each change it is told once"


def test_an_administrator_sees_the_connections(address: str) -> None:
    with SocketClient(address) as consumer, SocketClient(address) as admin:
        consumer.ask(34, heartbeat("g", producers=("p",)))
        seen = {"clientAddr": consumer.address, "clientId": "c", "language": "JAVA", "version": 401}
        assert decode(admin.ask(203, consumerGroup="g")[1])["connectionSet"] == [seen]
        assert decode(admin.ask(204, producerGroup="p")[1])["connectionSet"] == [seen]
        (told,) = decode(admin.ask(328)[1])["data"]["p"]
        assert told["remoteIP"] == f"/{consumer.address}"
        consumer.ask(35, clientID="c", consumerGroup="g", producerGroup="p")
        header, _ = admin.ask(203, consumerGroup="g")
        assert (header["code"], header["remark"]) == (206, "the consumer group[g] not online")


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


def test_a_consumer_that_does_not_answer_is_told_of(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_call_processor, "CALL_TIMEOUT", 0.2)
    with SocketClient(address) as consumer, SocketClient(address) as admin:
        consumer.ask(34, heartbeat("g"))
        header, _ = admin.ask(307, consumerGroup="g", clientId="c")
        assert header["code"] == 207
        why = f"wait response on the channel <{consumer.address}> timeout, 200(ms)"
        assert header["remark"] == (
            f"consumer <g> <c> Timeout: org.apache.rocketmq.remoting.exception.RemotingTimeoutException: {why}"
        )


def test_a_consumer_gets_a_record_of_the_log(address: str, store: Path) -> None:
    message = rmqfast.open_store(store).get("fx_plain", 1, 0, max_messages=1).messages[0]
    result = b'{"consumeResult":"CR_SUCCESS"}'
    with SocketClient(address, {309: lambda *_: result}) as consumer, SocketClient(address) as admin:
        consumer.ask(34, heartbeat("g"))
        header, body = admin.ask(309, consumerGroup="g", clientId="c", msgId=message.offset_msg_id)
        assert (header["code"], body) == (0, result)
        code, fields, record = consumer.asked.get(timeout=PATIENCE)
        assert (code, fields["brokerName"], len(record)) == (309, "broker-a", message.store_size)


def test_offsets_are_reset_for_a_time_of_the_store(address: str, control: Control, store: Path) -> None:
    opened = rmqfast.open_store(store)
    control.topics["fx_plain"] = TopicConfig(topic_name="fx_plain", read_queue_nums=4, write_queue_nums=4)
    ends = {queue_id: bounds[1] for queue_id, bounds in opened.topics()["fx_plain"].items()}
    when = opened.get("fx_plain", 0, 5, max_messages=1).messages[0].store_timestamp
    with SocketClient(address) as consumer, SocketClient(address) as admin:
        consumer.ask(34, heartbeat("g"))
        for queue_id, end in ends.items():
            admin.ask(15, consumerGroup="g", topic="fx_plain", queueId=queue_id, commitOffset=end)
        header, body = admin.ask(222, topic="fx_plain", group="g", timestamp=when, isForce="true")
        assert header["code"] == 0
        found = {queue_id: opened.offset_for_time("fx_plain", queue_id, when, rule="4.9.4") for queue_id in ends}
        table = {MessageQueue("fx_plain", "broker-a", queue_id): offset for queue_id, offset in found.items()}
        assert decode(body) == {"offsetTable": table}
        code, fields, sent = consumer.asked.get(timeout=PATIENCE)
        assert (code, fields["timestamp"], sent) == (220, str(when), body)


def test_consumers_tell_their_offsets(address: str) -> None:
    told = encode({"messageQueueTable": {MessageQueue("t", "broker-a", 0): 9}, "consumerTable": {}})
    with SocketClient(address, {221: lambda *_: told}) as consumer, SocketClient(address) as admin:
        consumer.ask(34, heartbeat("g"))
        _, body = admin.ask(223, topic="t", group="g")
        assert decode(body)["consumerTable"] == {"c": {MessageQueue("t", "broker-a", 0): 9}}


def test_who_is_silent_for_too_long_is_disconnected(address: str, control: Control) -> None:
    with SocketClient(address) as silent:
        silent.ask(34, heartbeat("g"))
        control.time += 120_001
        assert not silent.ended.is_set()
        control.clients.scan()
        assert silent.ended.wait(PATIENCE)


def test_of_a_large_group_each_client_is_told_once(address: str, control: Control) -> None:
    clients = [SocketClient(address) for _ in range(100)]
    for number, client in enumerate(clients):
        client.ask(34, heartbeat("g", client_id=f"c{number}"))
    for client in clients:
        while not client.notices.empty():
            client.notices.get()
    control.notifier.run_once()
    assert [client.notices.get(timeout=PATIENCE) for client in clients] == ["g"] * 100
    for client in clients:
        client.close()


def test_a_hundred_come_and_go_and_nothing_is_left(address: str, control: Control) -> None:
    clients = [SocketClient(address) for _ in range(100)]
    for number, client in enumerate(clients):
        assert client.ask(34, heartbeat(f"g{number % 4}", client_id=f"c{number}", producers=("p",)))[0]["code"] == 0
    assert sum(len(control.consumers.client_ids(f"g{number}")) for number in range(4)) == 100
    for client in clients:
        client.close()
    until(lambda: not (control.consumers.names() or control.producers.table() or control.tables.online))
