"""What is explained of groups that want what an expression says, against brokers in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin, Outcome
from rmqfast.client.consumer.subscription import MessageSelector
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer, PushOptions
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.waiting import until

from .members import is_settled, online


@pytest.fixture(scope="module")
def cluster(face: str) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"enablePropertyFilter": "true"}) as running:
        yield running


def by_sql(topic: str, expression: str, version: int = 1) -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=expression, expression_type="SQL92", sub_version=version)


def sent(cluster: EmbeddedCluster, admin: Admin, topic: str, *values: str | None) -> list[Any]:
    """Messages of queue 0 whose property `amount` has these values."""
    queue = MessageQueue(topic, "broker-a", 0)
    with Producer("explain_sql_tests", name_server=cluster.name_server) as producer:
        results = [
            producer.send(Message(topic, b"x", properties={} if value is None else {"amount": value}), queue)
            for value in values
        ]
    return [admin.view_message(result.offset_msg_id) for result in results]


def test_a_push_consumer_with_an_expression_gets_what_explain_says(cluster: EmbeddedCluster, admin: Admin) -> None:
    topic, group = "orders", "sql_push"
    got: list[int] = []
    admin.create_topic(topic, queues=1)
    config = ClientConfig(name_server=cluster.name_server, persist_offset_interval=0.2)
    consumer = PushConsumer(group, config=config, options=PushOptions(pull_suspend_millis=500))

    def listen(batch: Sequence[Any], _context: object) -> ConsumeConcurrentlyStatus:
        got.extend(message.queue_offset for message in batch)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.subscribe(topic, MessageSelector.by_sql("amount > 3"))
    consumer.register_message_listener(listen)
    with consumer:
        until(lambda: is_settled(admin, group, topic))
        messages = sent(cluster, admin, topic, "5", "1", None, "7", "seven")
        until(lambda: admin.explain(messages[-1], group).outcome is not Outcome.NOT_CONSUMED_YET)
        after = [admin.explain(message, group) for message in messages]

    consumed = [
        message.queue_offset for message, told in zip(messages, after, strict=True) if told.outcome == "CONSUMED"
    ]
    assert consumed == sorted(got) == [0, 3]
    assert "by SQL92 amount > 3 (amount is '5') at 20" in after[0].sentence
    assert [after[n].outcome for n in (1, 2, 4)] == [Outcome.FILTERED] * 3
    filtered = f"nobody got it: the broker filtered it for {after[0].member} by SQL92 amount > 3"
    assert after[1].sentence.startswith(f"{filtered} (amount is '1') ")
    assert after[2].sentence.startswith(f"{filtered} (amount is missing) ")


@pytest.mark.parametrize(
    ("config", "expression", "remark"),
    [
        ({}, "amount > 3", "The broker does not support consumer to filter message by SQL92"),
        ({"enablePropertyFilter": "true"}, "amount >", "CODE: 23"),
    ],
)
def test_a_broker_that_cannot_judge_is_told_by_its_remark(config: dict[str, str], expression: str, remark: str) -> None:
    topic, group = "unjudged", "sql_off"
    queue = MessageQueue(topic, "broker-a", 0)
    with (
        EmbeddedCluster(config=config | {"pullLedgerEnable": "false"}) as cluster,
        Admin(name_server=cluster.name_server) as admin,
    ):
        admin.create_topic(topic, queues=1)
        (message,) = sent(cluster, admin, topic, "5")
        with online(cluster.name_server, "C1", group, [by_sql(topic, expression)], [queue]):
            admin.offsets.reset(group, queue, 1, force=True)
            told = admin.explain(message, group)
    assert told.outcome is Outcome.UNKNOWN
    assert f"the broker does not say what SQL92 {expression} is of it: " in told.sentence
    assert remark in told.sentence
