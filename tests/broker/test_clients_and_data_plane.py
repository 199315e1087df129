"""What clients say of themselves decides what the data plane gives them: heartbeats and pulls over real sockets."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast._native import DataPlane
from rmqfast._native import RemotingServer as Listener
from rmqfast.broker.options_of_config import DataPlaneOptions
from rmqfast.remoting import Channel, RemotingServer, RequestCode, ServerOptions
from rmqfast.remoting.fastjson import decode, encode
from rmqfast.store.config import ConsumerOffsetTable, SubscriptionGroupConfig, TopicConfig
from tests.waiting import PATIENCE

from .client_control import Control
from .interop.frames import JSON, Connection, Frame
from .pulled import body_of, records_of

GROUP, TOPIC = "conflict", "orders"
FILTERS = DataPlaneOptions("broker-a", "c", "127.0.0.1:10911", property_filter=True)
SQL = {"topic": TOPIC, "expressionType": "SQL92", "subString": "a > 1", "subVersion": 1}
SMALL = rmqfast.AppendOptions(file_size=1 << 20, queue_file_size=2000, index_slots=1000, index_entries=4000)


class SocketClient:
    """A client at the other end of a socket; `asked` has the bodies of the broker's own requests, without notices."""

    def __init__(self, address: str) -> None:
        self.asked: queue.Queue[bytes] = queue.Queue()
        host, _, port = address.rpartition(":")
        self._connection, self._opaque = Connection((host, int(port)), self._take), 0

    def ask(self, code: int, body: bytes = b"", **fields: object) -> tuple[dict[str, Any], bytes]:
        """The header and the body of the answer."""
        self._opaque += 1
        header = {"code": code, "flag": 0, "language": "JAVA", "opaque": self._opaque, "version": 401}
        texts = {name: str(value) for name, value in fields.items()}
        self._connection.send(Frame(JSON, header | {"extFields": texts}, body).written())
        answer = self._connection.response(self._opaque, PATIENCE)
        assert answer is not None
        return answer.header, answer.body

    def close(self) -> None:
        self._connection.close()

    def _take(self, request: Frame) -> None:
        if request.code != RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self.asked.put(request.body)


@dataclass
class Broker:
    """A data plane with the control plane of clients, where they listen, and who connected."""

    control: Control
    address: str
    root: Path
    connections: list[SocketClient] = field(default_factory=list)

    def connected(self) -> SocketClient:
        self.connections.append(SocketClient(self.address))
        return self.connections[-1]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Two messages in each of four queues, of tag A and of tag B; queue 4 is empty."""
    root = tmp_path / "store"

    def closed(channel: Channel) -> None:
        control.clients.on_closed(channel)

    with rmqfast.open_store(root, mode="a", options=SMALL) as store:
        for number in range(8):
            store.append(rmqfast.Message(TOPIC, b"%d" % number, tags="AB"[number % 2], queue_id=number // 2))
        processors: dict[int, Any] = {}
        with RemotingServer(processors, closed=closed) as server:
            plane = DataPlane.open(store.appender, server.mailbox, FILTERS)
            control = Control(root, store.live, data_plane=plane)
            processors |= control.processors
            plane.put_topic(TopicConfig(topic_name=TOPIC, read_queue_nums=5, write_queue_nums=5))
            listener = Listener.bind("127.0.0.1:0", plane, ServerOptions())
            broker = Broker(control, listener.address, root)
            yield broker
            for connection in broker.connections:
                connection.close()
            listener.close()
            plane.close()


class PushConsumer:
    """A consumer that pulls by the subscription of its heartbeat, as push consumers do."""

    def __init__(self, broker: Broker, name: str, wanted: str, expression_type: str = "TAG") -> None:
        self.connection = broker.connected()
        self.name = name
        self.wanted = wanted
        self.expression_type = expression_type

    def heartbeat(self, version: int, *, topic: str = TOPIC, model: str = "CLUSTERING") -> None:
        tags = [self.wanted] if self.expression_type == "TAG" and self.wanted != "*" else []
        wanted = {
            "topic": topic,
            "subString": self.wanted,
            "tagsSet": tags,
            "codeSet": [ord(tag) for tag in tags],
            "subVersion": version,
            "expressionType": self.expression_type,
        }
        consumer = {"groupName": GROUP, "messageModel": model, "subscriptionDataSet": [wanted]}
        body = encode({"clientID": self.name, "consumerDataSet": [consumer], "producerDataSet": []})
        assert self.connection.ask(34, body)[0]["code"] == 0

    def pull(self, queue_id: int, version: int, offset: int = 0) -> tuple[int, str, int, list[str]]:
        """Code, remark, where it goes on, and the bodies."""
        header, body = self.connection.ask(
            11,
            consumerGroup=GROUP,
            topic=TOPIC,
            queueId=queue_id,
            queueOffset=offset,
            maxMsgNums=32,
            sysFlag=0,
            commitOffset=0,
            suspendTimeoutMillis=0,
            subVersion=version,
            expressionType=self.expression_type,
        )
        told = header.get("extFields") or {}
        bodies = [body_of(record).decode() for record in records_of(body)]
        return header["code"], header.get("remark") or "", int(told.get("nextBeginOffset", -1)), bodies


def test_two_consumers_of_a_group_get_what_the_newest_heartbeat_wants(broker: Broker) -> None:
    one, two = PushConsumer(broker, "1", "A"), PushConsumer(broker, "2", "B")
    one.heartbeat(100)
    assert one.pull(0, 100) == (0, "FOUND", 2, ["0"])
    two.heartbeat(200)
    assert one.pull(0, 100) == (0, "FOUND", 2, ["1"]), "an older version is served, by the newest subscription"
    assert two.pull(3, 200) == (0, "FOUND", 2, ["7"])
    assert one.pull(0, 300) == (0, "FOUND", 2, ["0", "1"]), "all, before the heartbeat that says which"
    one.heartbeat(300)
    assert one.pull(0, 300) == (0, "FOUND", 2, ["0"])
    assert two.pull(3, 200) == (0, "FOUND", 2, ["6"])
    two.heartbeat(200)
    assert two.pull(3, 200) == (0, "FOUND", 2, ["6"]), "an older heartbeat changes nothing"


def test_a_heartbeat_without_the_topic_takes_it_from_all(broker: Broker) -> None:
    one, two = PushConsumer(broker, "1", "*"), PushConsumer(broker, "2", "*")
    one.heartbeat(100)
    assert one.pull(0, 100)[3] == ["0", "1"]
    two.heartbeat(100, topic="other")
    code, remark, *_ = one.pull(0, 100)
    assert code == 24
    assert remark.startswith("the consumer's subscription not exist")


def test_the_last_one_that_leaves_takes_the_group_along(broker: Broker) -> None:
    one, two = PushConsumer(broker, "1", "*"), PushConsumer(broker, "2", "*")
    one.heartbeat(100)
    two.heartbeat(100)
    two.connection.ask(35, clientID="2", consumerGroup=GROUP)
    assert one.pull(0, 100)[0] == 0
    one.connection.ask(35, clientID="1", consumerGroup=GROUP)
    code, remark, *_ = one.pull(0, 100)
    assert code == 24
    assert remark.startswith("the consumer's group info not exist")


def test_an_expression_counts_and_one_that_does_not_compile_is_told(broker: Broker) -> None:
    one = PushConsumer(broker, "1", "TAGS = 'B'", "SQL92")
    one.heartbeat(100)
    assert one.pull(1, 100) == (0, "FOUND", 2, ["3"])
    one.wanted = "TAGS ="
    one.heartbeat(200)
    assert one.pull(1, 200)[:2] == (
        27,
        "The broker's consumer filter data is not exist!Your expression may be wrong!",
    )
    one.wanted = "TAGS = 'A'"
    assert one.pull(1, 300)[:2] == (25, "the consumer's subscription not latest")
    one.heartbeat(300)
    assert one.pull(1, 300)[3] == ["2"]


def test_a_group_that_may_not_broadcast_is_refused_after_the_heartbeat_that_says_so(broker: Broker) -> None:
    broker.control.groups[GROUP] = config = SubscriptionGroupConfig(group_name=GROUP, consume_broadcast_enable=False)
    broker.control.data_plane.put_group(config)
    one = PushConsumer(broker, "1", "*")
    one.heartbeat(100)
    assert one.pull(0, 100)[0] == 0
    one.heartbeat(100, model="BROADCASTING")
    assert one.pull(0, 100)[:2] == (16, "the consumer group[conflict] can not consume by broadcast way")


def test_offsets_of_the_data_plane_are_reset_copied_and_saved(broker: Broker) -> None:
    one = PushConsumer(broker, "1", "*")
    one.heartbeat(100)
    ask = one.connection.ask
    broker.control.topics[TOPIC] = TopicConfig(topic_name=TOPIC, read_queue_nums=5, write_queue_nums=4)
    for queue_id in range(4):
        ask(15, consumerGroup=GROUP, topic=TOPIC, queueId=queue_id, commitOffset=2)
    assert ask(14, consumerGroup=GROUP, topic=TOPIC, queueId=1)[0]["extFields"] == {"offset": "2"}
    header, body = ask(222, topic=TOPIC, group=GROUP, timestamp=0, isForce="true")
    assert header["code"] == 0
    assert set(decode(body)["offsetTable"].values()) == {0}
    assert one.connection.asked.get(timeout=PATIENCE) == body
    ask(314, srcGroup=GROUP, destGroup="copy", topic=TOPIC, offline="true")
    assert ask(14, consumerGroup="copy", topic=TOPIC, queueId=3)[0]["extFields"] == {"offset": "2"}
    broker.control.offsets.persist()
    broker.control.metadata.write_files()
    saved = ConsumerOffsetTable.load(broker.root)
    assert dict(saved[TOPIC, GROUP]) == dict(saved[TOPIC, "copy"]) == dict.fromkeys(range(4), 2)
    broker.control.offsets.remove("copy")
    broker.control.offsets.persist()
    broker.control.metadata.write_files()
    assert list(ConsumerOffsetTable.load(broker.root)) == [(TOPIC, GROUP)]


def test_a_new_group_begins_at_the_start_of_a_young_queue(broker: Broker) -> None:
    client = broker.connected()

    def begin(queue_id: int = 0, **fields: Any) -> tuple[int, str | None]:
        header, _ = client.ask(14, consumerGroup="new", topic=TOPIC, queueId=queue_id, **fields)
        return header["code"], (header.get("extFields") or {}).get("offset")

    assert [begin(queue_id) for queue_id in (0, 4, 77)] == [(0, "0")] * 3, "also of an empty queue, and of none"
    assert begin(setZeroIfNotFound="false") == (22, None), "a client of 5.x decides itself"
    for committed in (2, 1, -1):
        client.ask(15, consumerGroup="new", topic=TOPIC, queueId=0, commitOffset=committed)
        assert begin() == (0, str(max(committed, 0)))
    broker.control.data_plane.set_options(replace(FILTERS, memory=0))
    assert begin(1) == (22, None), "its first message does not count as in memory"


def test_a_queue_has_bounds(broker: Broker) -> None:
    ask = broker.connected().ask
    bounds = [
        [ask(code, topic=TOPIC, queueId=queue_id)[0]["extFields"]["offset"] for code in (31, 30)]
        for queue_id in (0, 4, 77)
    ]
    assert bounds == [["0", "2"], ["0", "0"], ["0", "0"]]
    header, _ = ask(30, topic=TOPIC, queueId="x")
    assert (header["code"], header["remark"]) == (1, 'the header field queueId is no number: "x"')


@pytest.mark.parametrize("fields", [{"topic": "a@b"}, {"consumerGroup": "@"}, {"queueId": 1 << 31}, {"queueId": -1}])
def test_an_offset_that_makes_no_sense_does_not_harm_the_file(broker: Broker, fields: dict[str, Any]) -> None:
    client = broker.connected()
    good: dict[str, Any] = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": 1}
    client.ask(15, **good)
    client.ask(15, **(good | fields))
    broker.control.offsets.persist()
    broker.control.metadata.write_files()
    saved = ConsumerOffsetTable.load(broker.root)
    assert saved[TOPIC, "g"][0] == 1
    assert set(saved) == {(TOPIC, "g")}
    broker.control.metadata.close()
    restarted = Control(broker.root)
    restarted.offsets.load()
    assert restarted.tables.offset("g", TOPIC, 0) == 1
    assert json.dumps(saved.to_json())


def check_filter(broker: Broker, wanted: dict[str, Any]) -> tuple[int, str | None]:
    """Code and remark of the answer to CHECK_CLIENT_CONFIG."""
    body = encode({"clientId": "c", "group": "g", "subscriptionData": wanted})
    header, _ = broker.connected().ask(46, body)
    return header["code"], header.get("remark")


def test_a_client_asks_whether_it_can_filter(broker: Broker) -> None:
    lua = SQL | {"expressionType": "LUA"}
    assert check_filter(broker, SQL) == (0, None)
    assert check_filter(broker, SQL | {"subString": "a >"}) == (
        23,
        "expected a property, a value or '(', found the end at position 3 of \"a >\"",
    )
    assert check_filter(broker, lua) == (23, "no filter is called LUA")
    broker.control.data_plane.set_options(replace(FILTERS, property_filter=False))
    for tags in ({"topic": "t", "subString": "A", "expressionType": "TAG"}, {"topic": "t", "subString": "A"}):
        assert check_filter(broker, tags) == (0, None)
    assert check_filter(broker, SQL) == (1, "The broker does not support consumer to filter message by SQL92")
    assert check_filter(broker, lua) == (1, "The broker does not support consumer to filter message by LUA")


@pytest.mark.parametrize("expression", ["(" * 100_000, "NOT " * 100_000 + "a", "-" * 100_000 + "1", "'" * 100_001])
def test_an_expression_that_no_person_wrote_is_refused_in_few_words(broker: Broker, expression: str) -> None:
    code, remark = check_filter(broker, SQL | {"subString": expression})
    assert code == 23
    assert 0 < len(remark or "") <= 1000
