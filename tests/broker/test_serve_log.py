"""The port at which a broker serves its log to slaves: who gets it, and what a broker does that cannot listen there."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster, Message, Mirror, Producer, SendStatus, open_store
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.errors import ArgumentError, RemotingError
from rmqfast.nameserver import NameServer, NamesrvConfig
from tests.mirror.copies import SMALL, assert_same, caught_up
from tests.waiting import PATIENCE, until

CONFIG = dict(line.split("=") for line in SMALL)


def cluster(directory: Path, **config: str) -> EmbeddedCluster:
    return EmbeddedCluster(directory, config=CONFIG | config)


def send(name_server: str, count: int) -> list[SendStatus]:
    with Producer("p", name_server=name_server) as producer:
        return [producer.send(Message("orders", b"%d" % number * 100)).status for number in range(count)]


@contextmanager
def slave_of(embedded: EmbeddedCluster, offset: int = 0) -> Iterator[socket.socket]:
    """A connection that has asked for the log from an offset."""
    port = embedded.brokers[0].config.number("haListenPort")
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(offset.to_bytes(8, "big"))
        yield connection


def test_a_mirror_of_our_own_broker_has_its_log_and_queues(tmp_path: Path) -> None:
    with cluster(tmp_path / "ours") as embedded:
        send(embedded.name_server, 300)
        with Mirror(tmp_path / "copies", name_server=embedded.name_server) as mirror:
            send(embedded.name_server, 300)
            status = caught_up(mirror, tmp_path / "ours")
        assert_same(tmp_path / "ours", status.directory)


def test_with_access_control_only_named_slaves_get_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "conf").mkdir()
    account = "{accessKey: brokers, secretKey: '12345678', admin: true}"
    text = f"globalWhiteRemoteAddresses: [127.0.0.1]\naccounts: [{account}]\n"
    (tmp_path / "conf" / "plain_acl.yml").write_text(text)
    secured = {"aclEnable": "true", "rocketmqHome": str(tmp_path)}
    with cluster(tmp_path / "ours", **secured) as embedded:
        send(embedded.name_server, 5)
        # a reset where the request was not read
        with slave_of(embedded) as connection, suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        until(lambda: "was refused the log: it is not among those that may connect (haSlaveAddresses)" in caplog.text)
    with cluster(tmp_path / "ours", **secured, haSlaveAddresses="10.0.0.1, 127.0.0.1") as embedded:
        with slave_of(embedded) as connection:
            # the frame goes on where the slave asked, from the log's start
            assert connection.recv(8, socket.MSG_WAITALL) == bytes(8)
        with pytest.raises(ArgumentError, match=r'haSlaveAddresses: expected addresses, got "10.0.0"'):
            cluster(tmp_path / "other", haSlaveAddresses="10.0.0").start()


def test_a_port_that_another_has_costs_the_slaves_and_a_sync_master_its_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = str(other.getsockname()[1])
        with caplog.at_level(logging.WARNING), cluster(tmp_path, haListenPort=taken) as embedded:
            assert send(embedded.name_server, 1) == [SendStatus.SEND_OK]
        assert f"no listener for slaves: listening at 127.0.0.1:{taken}: " in caplog.text
        with pytest.raises(RemotingError, match=f"listening at 127.0.0.1:{taken}: "):
            cluster(tmp_path, haListenPort=taken, brokerRole="SYNC_MASTER").start()


def test_a_sync_master_without_a_slave_stores_and_says_so(tmp_path: Path) -> None:
    with cluster(tmp_path, brokerRole="SYNC_MASTER") as embedded:
        assert send(embedded.name_server, 3) == [SendStatus.SLAVE_NOT_AVAILABLE] * 3
        # whoever only reads is no slave
        with slave_of(embedded) as connection:
            assert connection.recv(1)
            assert send(embedded.name_server, 1) == [SendStatus.SLAVE_NOT_AVAILABLE]
    with open_store(tmp_path) as store:
        assert len(store.scan("orders").to_arrow()) == 4


def test_a_frame_has_as_many_bytes_as_the_configuration_says_or_a_mebibyte(tmp_path: Path) -> None:
    for config, most in (({"haTransferBatchSize": "2000"}, 2000), ({}, 1 << 20)):
        with cluster(tmp_path, **config) as embedded:
            send(embedded.name_server, 20)
            with slave_of(embedded) as connection:
                head = connection.recv(12, socket.MSG_WAITALL)
        size = int.from_bytes(head[8:], "big")
        assert size == most if config else 2000 < size <= most


def test_a_mirror_finds_its_master_at_another_address_and_with_another_clock(tmp_path: Path) -> None:
    hour, addresses = 3_600_000, set()
    names = NamesrvConfig(listen_port=0, kv_config_path=str(tmp_path / "kv.json"))
    with NameServer(names) as server, ExitStack() as stack:
        own = {"namesrvAddr": server.address, "storePathRootDir": str(tmp_path / "ours"), "listenPort": "0"}

        def served(skew: int) -> Broker:
            return Broker(BrokerConfig(CONFIG | own), now=lambda: time.time_ns() // 1_000_000 + skew)

        # an hour ahead of the mirror's
        with served(hour) as broker:
            addresses.add(broker.address)
            send(server.address, 100)
            mirror = stack.enter_context(Mirror(tmp_path / "copies", name_server=server.address))
            assert caught_up(mirror, tmp_path / "ours").lag_seconds == 0
        # and an hour behind: times in the log go back
        with served(-hour) as broker:
            addresses.add(broker.address)
            send(server.address, 100)
            status = caught_up(mirror, tmp_path / "ours")
    assert len(addresses) == 2
    assert_same(tmp_path / "ours", status.directory)
    with open_store(status.directory) as store:
        assert store.verify().ok
