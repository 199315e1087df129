"""How asynchronous sends end that a broker answers otherwise than brokers mostly do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from rmqfast import EmbeddedCluster, Message
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer, ProducerOptions, SendResult
from rmqfast.errors import ChannelClosedError, RemotingProtocolError, ResponseError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingServer, Request, Response
from tests.waiting import PATIENCE, until

_SEND, _HEARTBEAT, _UNREGISTER = 310, 34, 35
_STORED = {"msgId": "7F00", "queueId": "1", "queueOffset": "7"}
#: What is answered to a body.
_ANSWERS = {
    b"stored": Response(0, None, _STORED),
    b"of a region": Response(0, None, {**_STORED, "MSG_REGION": "north", "TRACE_ON": "false", "transactionId": "T"}),
    b"not at the slave": Response(11, None, _STORED),
    b"in another queue": Response(0, None, {**_STORED, "queueId": "3"}),
    b"without an offset": Response(0, None, {"msgId": "7F00", "queueId": "1"}),
    b"no number": Response(0, None, {**_STORED, "queueOffset": "x"}),
    b"refused": Response(16, "no permission"),
}


@dataclass
class Broker:
    """A broker that answers as the body of a message says, and closes the connection where it does not know it."""

    seen: Counter[bytes] = field(default_factory=Counter)

    def answer(self, request: Request) -> Response | None:
        self.seen[request.body] += 1
        if request.body not in _ANSWERS:
            request.channel.close()
            return None
        return _ANSWERS[request.body]


@pytest.fixture(scope="module")
def broker() -> Broker:
    return Broker()


@pytest.fixture(scope="module")
def producer(broker: Broker) -> Iterator[Producer]:
    processors = {_SEND: broker.answer, _HEARTBEAT: lambda _: Response(), _UNREGISTER: lambda _: Response()}
    with EmbeddedCluster() as cluster, RemotingServer(processors) as server:
        with Producer("maker", name_server=cluster.name_server) as maker:
            maker.create_topic("ends")
        address = server.listen("127.0.0.1:0")
        config = ClientConfig(name_server=cluster.name_server, translate_address=lambda _: address)
        with Producer("ends", config=config, options=ProducerOptions(async_retries=1)) as producer:
            yield producer


def ends_of(producer: Producer, body: bytes, times: int = 3) -> list[SendResult | RmqError]:
    """How sends of a body to queue 1 end, one after the other."""
    queue = next(each for each in producer.fetch_publish_message_queues("ends") if each.queue_id == 1)
    ends: list[SendResult | RmqError] = []
    for _ in range(times):
        before = len(ends)
        producer.send_async(Message("ends", body), ends.append, queue, PATIENCE)
        until(lambda before=before: len(ends) > before)  # type: ignore[misc]
    return ends


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"stored", ("SEND_OK", 1, 7, None, "DefaultRegion", True)),
        (b"of a region", ("SEND_OK", 1, 7, "T", "north", False)),
        (b"not at the slave", ("SLAVE_NOT_AVAILABLE", 1, 7, None, "DefaultRegion", True)),
        (b"in another queue", ("SEND_OK", 3, 7, None, "DefaultRegion", True)),
    ],
)
def test_a_message_that_is_stored_has_what_the_broker_says(
    producer: Producer, body: bytes, expected: tuple[object, ...]
) -> None:
    for result in ends_of(producer, body):
        assert isinstance(result, SendResult)
        assert isinstance(result.queue, MessageQueue)
        queue_id, rest = result.queue.queue_id, result[4:]
        assert (result.status.value, queue_id, *rest) == expected
        assert (len(result.msg_id), result.offset_msg_id) in {(32, "7F00"), (56, "7F00")}
    assert producer.in_flight == 0


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (b"without an offset", RemotingProtocolError, "queueOffset"),
        (b"no number", RemotingProtocolError, "queueOffset"),
        (b"refused", ResponseError, "no permission"),
    ],
)
def test_what_a_broker_refused_is_told_once_and_not_tried_again(
    producer: Producer, broker: Broker, body: bytes, kind: type[RmqError], text: str
) -> None:
    for error in ends_of(producer, body):
        assert isinstance(error, kind)
        assert text in str(error)
    assert broker.seen[body] == 3
    assert producer.in_flight == 0


def test_a_connection_that_ended_is_tried_once_more_and_then_told(producer: Producer, broker: Broker) -> None:
    assert [type(end) for end in ends_of(producer, b"closed")] == [ChannelClosedError] * 3
    assert broker.seen[b"closed"] == 6
    assert producer.in_flight == 0


def test_a_callback_that_fails_keeps_nobody_else_from_being_told(
    producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    def callback(_: object) -> None:
        raise ValueError("a defect of the application")

    for _ in range(100):
        producer.send_async(Message("ends", b"stored"), callback)
    assert len(ends_of(producer, b"stored")) == 3  # the other callback thread may still have earlier ends
    until(lambda: caplog.text.count("ValueError: a defect") == 100)
    assert producer.in_flight == 0
