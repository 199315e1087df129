"""Answers that have messages of another queue or topic, which are no rows of the range that was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast.errors import ClientError
from rmqfast.remoting import RequestCode
from tests.client.ranges.clusters import PieceRead, offsets, range_of, request
from tests.proxy import OtherFields, Proxy


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Two topics whose queues have as many messages each."""
    with EmbeddedCluster() as started, Producer("tests", name_server=started.name_server) as producer:
        for topic in ("orders", "bills"):
            producer.create_topic(topic, 2)
            for number in range(20):
                body = f"{topic} {number}".encode()
                producer.send(Message(topic, body, tags="A"), MessageQueue(topic, "broker-a", number % 2))
        yield started


@pytest.mark.parametrize(
    ("fields", "tags", "got"),
    [
        ({"queueId": "1"}, "*", "topic orders, queue 1"),
        ({"topic": "bills"}, "A", "topic bills, queue 0"),
        ({"topic": "bills", "queueId": "1"}, "*", "topic bills, queue 1"),
    ],
)
def test_messages_of_another_queue_are_no_rows(
    cluster: EmbeddedCluster, fields: dict[str, str], tags: str, got: str
) -> None:
    wanted = request(cluster.name_server, tags=tags, pullsInFlight=1, retryTimeoutMs=1000)
    with Proxy(cluster.brokers[0].address, lambda _: OtherFields(RequestCode.PULL_MESSAGE, **fields)) as proxy:
        pull = PieceRead(wanted, [range_of(0, 10)], proxy.address)
        with pytest.raises(ClientError, match=f"expected messages of topic orders, queue 0, got one of {got}"):
            list(pull.batches())
        assert pull.rows == 0


def test_the_same_messages_are_rows_where_they_are_asked_for(cluster: EmbeddedCluster) -> None:
    with Proxy(cluster.brokers[0].address, lambda _: OtherFields(RequestCode.PULL_MESSAGE, queueId="0")) as proxy:
        pull = PieceRead(request(cluster.name_server, pullsInFlight=1), [range_of(0, 10)], proxy.address)
        assert offsets(pull.batches()) == list(range(10))
