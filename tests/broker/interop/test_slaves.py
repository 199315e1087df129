"""RocketMQ's brokers as slaves of ours: what they have, what becomes of them, what sends get, and who goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from rmqfast import (
    Admin,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageView,
    Producer,
    PushConsumer,
    SendStatus,
    open_store,
)
from rmqfast.client.push import ConsumeConcurrentlyContext
from rmqfast.errors import RmqError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfigTable
from tests.interop.rocketmq import RocketMQ, java
from tests.mirror.copies import SMALL, assert_same, send, units_of
from tests.waiting import until

from .cluster import OurCluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

#: A slave of 5.x asks for the configuration each minute.
CONFIG_PATIENCE = 150
SLAVE = ("brokerId=1", "brokerRole=SLAVE", "slaveReadEnable=true", *SMALL)


@dataclass(frozen=True)
class Names:
    """A name server of ours, in this process: it outlives brokers that are killed."""

    name_server: str

    @property
    def name_server_port(self) -> int:
        return int(self.name_server.rpartition(":")[2])


@dataclass(frozen=True)
class Pair:
    """A broker of ours, one of RocketMQ that is its slave, and a name server that outlives both."""

    names: Names
    ours: OurCluster
    slave: RocketMQ

    @property
    def name_server(self) -> str:
        return self.names.name_server


@pytest.fixture(scope="module", params=["4.9.4", "5.3.3"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The tests take it one after the other: a slave of 5.x needs a minute to know a topic."""
    directory = tmp_path_factory.mktemp("pair")
    config = NamesrvConfig(kv_config_path=str(directory / "kvConfig.json"), listen_port=0)
    master = (*SMALL, "brokerRole=SYNC_MASTER", "slaveTimeout=2000")
    with NameServer(config) as server:
        names = Names(server.address)
        with OurCluster(directory / "ours", master, beside=names) as ours:
            with Admin(name_server=names.name_server) as admin:
                admin.topics.create("orders", queues=4, cluster="DefaultCluster")
                admin.create_group("readers", cluster="DefaultCluster")
            with RocketMQ(request.param, directory / "slave", *SLAVE, beside=names, clean=False) as slave:
                yield Pair(names, ours, slave)


def end_of(broker: str) -> int:
    """Where a broker's log ends; -1 where it does not say: 4.9.4 does not for some seconds after its start."""
    with suppress(RmqError), RemotingClient(broker, timeout=5) as client:
        table = decode(client.ask(RequestCode.GET_BROKER_RUNTIME_INFO, {}).body)["table"]
        return int(table["commitLogMaxOffset"])
    return -1


def is_same(pair: Pair) -> None:
    """Waits until the slave has the master's log, and compares the two, and the queues."""
    end, slave = end_of(pair.ours.broker), pair.slave.broker
    assert end > 0
    until(lambda: end_of(slave) >= end, lambda: f"{end}, got {end_of(slave)}")
    # the log is there before it is listed
    until(lambda: units_of(pair.ours.store) == units_of(pair.slave.store))
    assert_same(pair.ours.store, pair.slave.store)


@contextmanager
def load(pair: Pair) -> Iterator[list[bytes]]:
    """Messages are sent meanwhile, each of another body; those that were acknowledged by a slave, too."""
    is_over = threading.Event()
    acknowledged: list[bytes] = []

    def work() -> None:
        number = 0
        with Producer("loading", name_server=pair.name_server) as producer:
            while not is_over.is_set():
                number += 1
                body = b"%d %d" % (thread_number, number)
                with suppress(RmqError):
                    if producer.send(Message("orders", body + b" " * 300)).status is SendStatus.SEND_OK:
                        acknowledged.append(body)

    thread_number = time.time_ns()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        thread.join()


def test_a_slave_has_all_of_the_log_and_the_configuration_though_both_are_killed(pair: Pair) -> None:
    # several files of the log: RocketMQ's own masters would give a new slave the last one
    send(pair.name_server, "orders", [b"%d" % number * 200 for number in range(4000)])
    with RemotingClient(pair.ours.broker) as client:
        offset = {"consumerGroup": "readers", "topic": "orders", "queueId": "1", "commitOffset": "77"}
        client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, offset)
    is_same(pair)
    copy = pair.slave.store
    until(lambda: "orders" in TopicConfigTable.load(copy), patience=CONFIG_PATIENCE)
    until(lambda: "readers" in SubscriptionGroupTable.load(copy), patience=CONFIG_PATIENCE)
    until(lambda: ConsumerOffsetTable.load(copy).offset("orders", "readers", 1) == 77, patience=CONFIG_PATIENCE)
    # not amid a copy: RocketMQ keeps a record whose end it had not written, as its CRC is that of the body alone
    pair.slave.kill9()
    send(pair.name_server, "orders", [b"%d" % number * 200 for number in range(2000)])
    pair.slave.start()
    is_same(pair)
    with load(pair) as acknowledged:
        until(lambda: len(acknowledged) > 100)
        pair.ours.kill9()
    pair.ours.start()
    with load(pair) as acknowledged:
        until(lambda: len(acknowledged) > 100)
    is_same(pair)


def test_sends_to_a_sync_master_are_answered_as_rocketmq_answers_them(pair: Pair) -> None:
    slave = pair.slave
    with Producer("sync", name_server=pair.name_server) as producer:

        def status() -> SendStatus:
            return producer.send(Message("orders", b"x" * 100)).status

        def becomes(expected: SendStatus) -> None:
            until(lambda: status() is expected, lambda: f"{expected}, got {status()}")

        becomes(SendStatus.SEND_OK)
        assert {status() for _ in range(2000)} == {SendStatus.SEND_OK}
        os.kill(slave.pid, signal.SIGSTOP)
        try:
            becomes(SendStatus.FLUSH_SLAVE_TIMEOUT)
        finally:
            os.kill(slave.pid, signal.SIGCONT)
        becomes(SendStatus.SEND_OK)
        slave.kill9()
        becomes(SendStatus.SLAVE_NOT_AVAILABLE)
        slave.start()
        becomes(SendStatus.SEND_OK)


@dataclass
class Consumed:
    """What a consumer got."""

    bodies: set[bytes] = field(default_factory=set)

    def __call__(
        self, messages: tuple[MessageView, ...], _context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        self.bodies.update(message.body.strip() for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


# the last one: afterwards there is no master of ours
def test_when_the_master_is_lost_its_slave_goes_on_with_all_that_was_acknowledged(pair: Pair) -> None:
    consumed, slave = Consumed(), pair.slave
    consumer = PushConsumer(
        "new", name_server=pair.name_server, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer.subscribe("orders")
    consumer.register_message_listener(consumed)
    with consumer, load(pair) as acknowledged:
        until(lambda: len(acknowledged) > 500)
        pair.ours.kill9()
        before = len(acknowledged)
        # consumers read on from the slave
        until(lambda: set(acknowledged[:before]) <= consumed.bodies)
        slave.stop()
        # RocketMQ's own classes find what came sound
        java(slave.version, "DumpStore", slave.store, "--start")
        slave.properties = tuple(line for line in slave.properties if "brokerId" not in line and "Role" not in line)
        slave.start()
        until(lambda: len(acknowledged) > before + 500)
        until(lambda: set(acknowledged) <= consumed.bodies)
    with open_store(slave.store) as store:
        stored = {body.strip() for body in store.scan("orders", columns=["body"]).to_arrow()["body"].to_pylist()}
    assert set(acknowledged) <= stored
