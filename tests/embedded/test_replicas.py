"""Slaves of ours behind masters of ours: what they have, what they refuse, and what becomes of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast import (
    Admin,
    EmbeddedCluster,
    Message,
    MessageQueue,
    Producer,
    PullConsumer,
    SendStatus,
    Slave,
    open_store,
)
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.errors import ArgumentError
from rmqfast.mirror import broker_mirror
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, RequestCode, ResponseCode
from rmqfast.store.config import TopicConfigTable
from tests.broker.harmed_files import pulled as pulled_at
from tests.broker.live_server import Wire, send_fields
from tests.mirror.copies import SMALL, assert_same, lose_tail
from tests.waiting import until

CONFIG = dict(line.split("=") for line in SMALL)
#: A send waits for as long as a test does.
MASTER = CONFIG | {"brokerRole": "SYNC_MASTER", "slaveTimeout": "60000"}
COUNT = 40


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedCluster]:
    """A master whose sends wait for its slave, which looks at the configuration all the time."""
    monkeypatch.setattr(broker_mirror, "CONFIG_EVERY", 0.1)
    with EmbeddedCluster(tmp_path, replicas=1, config=MASTER) as embedded:
        with Admin(name_server=embedded.name_server) as admin:
            admin.topics.create("orders", queues=1, cluster="DefaultCluster")
            admin.create_group("readers", cluster="DefaultCluster")
        yield embedded


def send(name_server: str, count: int = COUNT, body: bytes = b"old") -> None:
    """So many messages that the slave has, too, and one more at least."""
    with Producer("p", name_server=name_server) as producer:
        until(lambda: producer.send(Message("orders", b"first")).status is SendStatus.SEND_OK)
        for number in range(count):
            assert producer.send(Message("orders", b"%s %d " % (body, number) * 20)).status is SendStatus.SEND_OK


def send_alone(name_server: str) -> None:
    """Some messages of another topic, to a broker without a slave."""
    with Producer("p", name_server=name_server) as producer:
        for number in range(COUNT):
            producer.send(Message("other", b"%d" % number))


def pulled(name_server: str) -> list[bytes]:
    """All of the queue, from the broker that the route names."""
    bodies: list[bytes] = []
    with PullConsumer("readers", name_server=name_server) as consumer:
        while True:
            result = consumer.pull(MessageQueue("orders", "broker-a", 0), "*", len(bodies), 32)
            if not result.messages:
                return bodies
            bodies += [message.body for message in result.messages]


def asked(slave: Slave, code: int, **fields: str) -> bytes:
    with RemotingClient(slave.address) as client:
        return client.ask(code, fields).body


def knows_orders(slave: Slave) -> bool:
    return b'"orders"' in asked(slave, RequestCode.GET_ALL_TOPIC_CONFIG)


def bodies_of(store: Path) -> list[bytes]:
    with open_store(store) as opened:
        bodies: list[bytes] = opened.scan("orders").to_arrow()["body"].to_pylist()
    return bodies


def test_when_the_master_is_gone_its_slave_gives_all_that_was_acknowledged(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    send(cluster.name_server)
    (slave,) = cluster.slaves
    until(lambda: knows_orders(slave))
    expected = pulled(cluster.name_server)
    assert len(expected) > COUNT
    cluster.brokers[0].stop()
    until(lambda: pulled(cluster.name_server) == expected)
    assert_same(tmp_path, slave.status.directory)
    # the command line finds the slave, too
    words = ("consume", "orders", "--group", "readers", "--from", "first", "--max", str(len(expected)), "-o", "jsonl")
    command = [sys.executable, "-m", "rmqfast", *words, "-n", cluster.name_server]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert len(done.stdout.splitlines()) == len(expected)


def test_a_slave_has_topics_groups_and_offsets_of_its_master(cluster: EmbeddedCluster) -> None:
    (slave,), master = cluster.slaves, cluster.brokers[0]
    send(cluster.name_server, 3)
    place = {"topic": "orders", "consumerGroup": "readers", "queueId": "0"}
    with RemotingClient(master.address) as client:
        client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, place | {"commitOffset": "2"})
    until(lambda: knows_orders(slave))
    until(lambda: b'"readers"' in asked(slave, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
    until(lambda: b'"orders@readers":{0:2}' in asked(slave, RequestCode.GET_ALL_CONSUMER_OFFSET))
    with Producer("p", name_server=cluster.name_server) as producer:
        producer.send(Message("orders", b"later", delay_level=1))
    # delivered by the master, and noted by both
    until(lambda: b"{1:1}" in asked(slave, RequestCode.GET_ALL_DELAY_OFFSET).replace(b'"', b""))
    with Admin(name_server=cluster.name_server) as admin:
        admin.topics.delete("orders", cluster="DefaultCluster")
        admin.create_topic("later", queues=1)
    until(lambda: b'"later"' in asked(slave, RequestCode.GET_ALL_TOPIC_CONFIG))
    until(lambda: not knows_orders(slave))


def test_a_slave_takes_no_messages_and_no_changes(cluster: EmbeddedCluster) -> None:
    (slave,) = cluster.slaves
    until(lambda: knows_orders(slave))
    with RemotingClient(slave.address) as client:
        for topic in ("orders", "new"):
            answer = client.request(310, send_fields(topic), b"body")
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert "messages are put to the slave" in (answer.remark or "")
        for code, fields in (
            (RequestCode.UPDATE_AND_CREATE_TOPIC, {"topic": "new", "readQueueNums": "1", "writeQueueNums": "1"}),
            (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"}),
            (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}),
            (RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "readers"}),
        ):
            answer = client.request(code, fields)
            assert (answer.code, answer.remark) == (
                ResponseCode.SYSTEM_ERROR,
                "Can't modify topic or subscription group from slave broker, please execute it from master broker.",
            )
    assert knows_orders(slave)
    assert b'"new"' not in asked(slave, RequestCode.GET_ALL_TOPIC_CONFIG)


def test_what_its_master_has_lost_a_slave_withdraws(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    send(cluster.name_server)
    (slave,), master = cluster.slaves, cluster.brokers[0]
    address = slave.address
    master.stop()
    # as after a loss of power: nobody closed the store, nothing says that its end was flushed, and others follow
    lose_tail(tmp_path, 7)
    (tmp_path / "abort").touch()
    (tmp_path / "checkpoint").unlink()
    with Broker(master.config.replaced({"listenPort": "0"})):
        send(cluster.name_server, body=b"new")
        until(lambda: slave.status.withdrawn_bytes > 0)
        send(cluster.name_server, 1)
        assert slave.address == address
        until(lambda: bodies_of(slave.status.directory) == bodies_of(tmp_path))
        assert_same(tmp_path, slave.status.directory, queues=False)
        assert len(bodies_of(tmp_path)) > 2 * COUNT - 7


def test_a_slave_is_promoted_by_its_configuration_and_its_master_comes_back_as_a_slave(
    cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    send(cluster.name_server)
    (slave,), master = cluster.slaves, cluster.brokers[0]
    until(lambda: knows_orders(slave))
    slave.stop()
    # a send that comes before would wait for the slave
    until(lambda: "the connection of the slave" in caplog.text)
    config, expected = slave.config, bodies_of(slave.status.directory)
    with Producer("p", name_server=cluster.name_server) as producer:
        # which nobody but the old master has
        until(lambda: producer.send(Message("orders", b"alone")).status is SendStatus.SLAVE_NOT_AVAILABLE)
    master.stop()
    promoted = {"brokerRole": "SYNC_MASTER", "brokerId": "0", "listenPort": "0"}
    promoted |= {"storePathRootDir": str(slave.status.directory)}
    with (
        Broker(config.replaced(promoted)),
        Slave(master.config.replaced({"brokerRole": "SLAVE", "brokerId": "1", "listenPort": "0"})) as old,
    ):
        send(cluster.name_server, body=b"new")
        assert pulled(cluster.name_server)[: len(expected)] == expected
        assert old.status.withdrawn_bytes > 0
        until(lambda: bodies_of(tmp_path) == bodies_of(slave.status.directory))
        assert b"alone" not in bodies_of(tmp_path)
        assert_same(slave.status.directory, tmp_path, queues=False)


def test_a_slave_serves_what_it_has_though_there_is_no_master(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path / "stores", replicas=1, config=MASTER) as embedded:
        with Admin(name_server=embedded.name_server) as admin:
            admin.topics.create("orders", queues=1, cluster="DefaultCluster")
        send(embedded.name_server)
        (slave,) = embedded.slaves
        until(lambda: knows_orders(slave), patience=60)
        config, expected = slave.config, bodies_of(tmp_path / "stores")
    names = NamesrvConfig(kv_config_path=str(tmp_path / "kvConfig.json"), listen_port=0)
    with (
        NameServer(names) as server,
        Slave(config.replaced({"namesrvAddr": server.address, "listenPort": "0"})) as alone,
        Wire(alone.address) as wire,
    ):
        # name servers take topics from masters alone, so clients that ask one find none
        assert pulled_at(wire, 0, "orders") == (expected, len(expected))
        until(lambda: "nobody has a log of broker-a" in alone.status.note)


def test_what_is_no_slave_and_what_cannot_follow_says_so(tmp_path: Path) -> None:
    slave = {"brokerRole": "SLAVE", "brokerId": "1", "storePathRootDir": str(tmp_path / "slave")}
    for config, reason in (
        ({"brokerRole": "ASYNC_MASTER"}, "brokerRole: expected SLAVE, got ASYNC_MASTER"),
        ({"brokerRole": "SLAVE"}, "brokerId: expected 1 or more for brokerRole=SLAVE, got 0"),
        (slave, "namesrvAddr: expected a name server that knows the master, got none"),
        (
            slave | {"namesrvAddr": "127.0.0.1:1", "haUseTLS": "true", "tls.enable": "false"},
            "haUseTLS=true: expected no tls.enable=false",
        ),
    ):
        with pytest.raises(ArgumentError, match=reason):
            Slave(BrokerConfig(config))
    with pytest.raises(ArgumentError, match=r"expected rmqfast\.Slave, which follows a master"):
        Broker(BrokerConfig(slave)).start()
    with EmbeddedCluster(tmp_path / "master", config=CONFIG) as embedded:
        other = CONFIG | slave | {"namesrvAddr": embedded.name_server, "listenPort": "0", "brokerName": "broker-a"}
        with Slave(BrokerConfig(other | {"mappedFileSizeCommitLog": "2097152"})) as follower:
            until(lambda: follower.error is not None)
            expected = "mappedFileSizeCommitLog: expected 1048576, as broker-a has, got 2097152"
            assert expected in str(follower.error)
        with Slave(BrokerConfig(other | {"haUseTLS": "true", "tls.client.authServer": "false"})) as follower:
            until(lambda: follower.error is not None)
            expected = f"expected a master that serves its log with TLS, got {embedded.brokers[0].address}"
            assert expected in str(follower.error)
    with pytest.raises(ArgumentError, match=r"expected haSlaveAddresses=127\.0\.0\.1, got none"):
        EmbeddedCluster(replicas=1, config={"aclEnable": "true"})


def test_a_slave_keeps_what_it_has_where_a_broker_of_its_masters_name_has_none_of_it(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path / "stores", replicas=1, config=MASTER) as embedded:
        send(embedded.name_server)
        config, copy = embedded.slaves[0].config, embedded.slaves[0].status.directory
    expected = bodies_of(copy)
    with EmbeddedCluster(tmp_path / "empty", config=CONFIG) as other:
        with Slave(config.replaced({"namesrvAddr": other.name_server, "listenPort": "0"})) as slave:
            until(lambda: slave.error is not None)
            assert "has nothing of the copy" in str(slave.error)
        send_alone(other.name_server)
        with Slave(config.replaced({"namesrvAddr": other.name_server, "listenPort": "0"})) as slave:
            until(lambda: slave.error is not None)
            assert "the copy has" in str(slave.error)
            assert "all of it" in str(slave.error)
    assert bodies_of(copy) == expected
    assert TopicConfigTable.load(copy).get("other") is None
