"""Slaves of RocketMQ behind our master, and ours behind RocketMQ's: what they have, and who goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from rmqfast import ConsumeFromWhere, Message, Producer, PushConsumer, SendStatus, open_store
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.store.config import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfigTable
from tests.effort import effort
from tests.interop.rocketmq import java
from tests.mirror.copies import send
from tests.waiting import until

from .pairs import OURS, Consumed, Pair, load, pair

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

#: Masters and slaves. Those behind the first two take minutes more, and show little more.
PAIRS = [pytest.param((OURS, "4.9.4"), marks=pytest.mark.real), ("5.3.3", OURS), ("4.9.4", OURS), (OURS, "5.3.3")]
#: A slave of 5.x asks for the configuration each minute.
CONFIG_PATIENCE = 150


@pytest.fixture(scope="module", params=PAIRS[: effort("RMQFAST_PAIRS", 2, 4)], ids="-".join)
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The tests take it one after the other."""
    with pair(request.param, tmp_path_factory.mktemp("pair")) as running:
        yield running


def test_a_slave_has_all_of_the_log_and_the_configuration_though_both_are_killed(brokers: Pair) -> None:
    # several files of the log: RocketMQ's own masters would give a new slave of theirs the last one
    send(brokers.name_server, "orders", [b"%d" % number * 200 for number in range(4000)])
    with RemotingClient(brokers.master.broker) as client:
        offset = {"consumerGroup": "readers", "topic": "orders", "queueId": "1", "commitOffset": "77"}
        client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, offset)
    brokers.is_same()
    copy, slave = brokers.slave.store, brokers.slave
    until(lambda: "orders" in TopicConfigTable.load(copy), patience=CONFIG_PATIENCE)
    until(lambda: "readers" in SubscriptionGroupTable.load(copy), patience=CONFIG_PATIENCE)
    until(lambda: ConsumerOffsetTable.load(copy).offset("orders", "readers", 1) == 77, patience=CONFIG_PATIENCE)
    if brokers.kinds[1] == OURS:
        with load(brokers) as acknowledged:
            until(lambda: len(acknowledged) > 100)
            slave.kill9()
    else:
        # not amid a copy: RocketMQ keeps a record whose end it had not written, as its CRC is that of the body alone
        slave.kill9()
        send(brokers.name_server, "orders", [b"%d" % number * 200 for number in range(2000)])
    slave.start()
    brokers.is_same()
    with load(brokers) as acknowledged:
        until(lambda: len(acknowledged) > 100)
        brokers.master.kill9()
    brokers.master.start()
    with load(brokers) as acknowledged:
        until(lambda: len(acknowledged) > 100)
    brokers.is_same()


def test_sends_to_a_sync_master_are_answered_by_what_its_slave_does(brokers: Pair) -> None:
    slave, kind = brokers.slave, brokers.kinds[0]
    without = SendStatus.FLUSH_SLAVE_TIMEOUT if kind.startswith("5") else SendStatus.SLAVE_NOT_AVAILABLE
    with Producer("sync", name_server=brokers.name_server) as producer:

        def status() -> SendStatus:
            return producer.send(Message("orders", b"x" * 100), timeout=10).status

        def becomes(expected: SendStatus) -> None:
            until(lambda: status() is expected, lambda: f"{expected}, got {status()}")

        becomes(SendStatus.SEND_OK)
        for _ in range(500):
            becomes(SendStatus.SEND_OK)
        os.kill(slave.pid, signal.SIGSTOP)
        try:
            becomes(SendStatus.FLUSH_SLAVE_TIMEOUT)
        finally:
            os.kill(slave.pid, signal.SIGCONT)
        becomes(SendStatus.SEND_OK)
        slave.kill9()
        becomes(without)
        slave.start()
        becomes(SendStatus.SEND_OK)


# the last one: afterwards there is no master
def test_when_the_master_is_lost_its_slave_goes_on_with_all_that_was_acknowledged(brokers: Pair) -> None:
    consumed, slave = Consumed(), brokers.slave
    consumer = PushConsumer(
        "new", name_server=brokers.name_server, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer.subscribe("orders")
    consumer.register_message_listener(consumed)
    with consumer:
        with load(brokers) as acknowledged:
            until(lambda: len(acknowledged) > 500)
            brokers.master.kill9()
            before = len(acknowledged)
            # consumers read on from the slave
            until(lambda: set(acknowledged[:before]) <= consumed.bodies)
            brokers.promote()
            until(lambda: len(acknowledged) > before + 500)
        # nothing more is sent
        until(lambda: set(acknowledged) <= consumed.bodies)
    slave.stop()
    # RocketMQ's own classes find what came sound
    java("4.9.4", "DumpStore", slave.store, "--start")
    with open_store(slave.store) as store:
        stored = {body.strip() for body in store.scan("orders", columns=["body"]).to_arrow()["body"].to_pylist()}
    assert set(acknowledged) <= stored
