"""Answers that have another message than the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from rmqfast import ClientConfig, EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast.admin import Admin
from rmqfast.errors import RemotingProtocolError, UnknownMessageError
from rmqfast.remoting import RequestCode
from tests.proxy import OtherFields, Proxy


class Sent(NamedTuple):
    """A cluster, and the ids that its broker gave to messages of `orders`, one in each of two queues."""

    cluster: EmbeddedCluster
    ids: list[str]


@pytest.fixture(scope="module")
def sent() -> Iterator[Sent]:
    with EmbeddedCluster() as cluster, Producer("tests", name_server=cluster.name_server) as producer:
        for topic in ("orders", "bills"):
            producer.create_topic(topic, 2)
        producer.send(Message("bills", b"due", keys="k"), MessageQueue("bills", "broker-a", 0))
        message = Message("orders", b"paid", keys="k")
        results = [producer.send(message, MessageQueue("orders", "broker-a", number)) for number in range(2)]
        yield Sent(cluster, [result.offset_msg_id for result in results])


@contextmanager
def misled(sent: Sent, code: int, **fields: str) -> Iterator[Admin]:
    """An administrator whose requests of a code reach the broker with other fields."""
    broker = sent.cluster.brokers[0].address
    with Proxy(broker, lambda _: OtherFields(code, **fields)) as proxy:
        behind = {broker: proxy.address}
        config = ClientConfig(translate_address=lambda address: behind.get(address, address))
        with Admin(name_server=sent.cluster.name_server, config=config) as admin:
            yield admin


def offset_of(message_id: str) -> int:
    return int(message_id[-16:], 16)


def test_another_message_of_the_log_is_not_the_one_with_the_id(sent: Sent) -> None:
    wanted, other = map(offset_of, sent.ids)
    with misled(sent, RequestCode.VIEW_MESSAGE_BY_ID, offset=str(other)) as admin:
        text = f"expected the message at offset {wanted} of the log, got the one at {other}"
        with pytest.raises(RemotingProtocolError, match=text):
            admin.view_message(sent.ids[0])
        with pytest.raises(RemotingProtocolError, match=text):
            admin.view_message(sent.ids[0], "orders")
        assert admin.view_message(sent.ids[1]).body == b"paid"


@pytest.mark.parametrize(
    ("fields", "got"),
    [({"queueId": "1"}, "topic orders, queue 1"), ({"topic": "bills"}, "topic bills, queue 0")],
)
def test_a_message_of_another_queue_is_not_the_one_at_an_offset(sent: Sent, fields: dict[str, str], got: str) -> None:
    with misled(sent, RequestCode.PULL_MESSAGE, **fields) as admin:
        text = f"pull from .*: expected messages of topic orders, queue 0, got one of {got}"
        with pytest.raises(RemotingProtocolError, match=text):
            admin.messages.by_offset(MessageQueue("orders", "broker-a", 0), 0)


def test_a_message_of_another_topic_does_not_have_the_producers_id(sent: Sent) -> None:
    with Admin(name_server=sent.cluster.name_server) as plain:
        unique = plain.view_message(sent.ids[0]).msg_id
    # as where the hashes of two topics are the same
    with misled(sent, RequestCode.QUERY_MESSAGE, topic="orders") as admin:
        assert admin.messages.by_unique_key("orders", unique).msg_id == unique
        with pytest.raises(UnknownMessageError, match=f"no message of the topic bills has the id {unique}"):
            admin.messages.by_unique_key("bills", unique)
        assert admin.messages.by_key("bills", "k") == []
        assert len(admin.messages.by_key("orders", "k")) == 2
