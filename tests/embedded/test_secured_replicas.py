"""A slave in a cluster with accounts and TLS: it asks with an account, and its log comes over TLS."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rmqfast import Admin, ClientConfig, EmbeddedCluster, Message, Mirror, Producer, SendStatus
from rmqfast.acl import SecureDirectory
from rmqfast.errors import ArgumentError, MirrorError
from rmqfast.remoting import RemotingClient, RequestCode, TlsOptions, properties
from rmqfast.remoting.credentials import Credentials
from tests.mirror.copies import SMALL, assert_same
from tests.waiting import PATIENCE, until

SECURED = {"brokerRole": "SYNC_MASTER", "slaveTimeout": "60000", "haUseTLS": "true", "haSlaveAddresses": "127.0.0.1"}


@pytest.fixture
def directory(tmp_path: Path) -> SecureDirectory:
    return SecureDirectory.at(tmp_path / "secured")


@pytest.fixture
def cluster(tmp_path: Path, directory: SecureDirectory) -> Iterator[EmbeddedCluster]:
    config = properties.loads(directory.config.read_text()) | dict(line.split("=") for line in SMALL) | SECURED
    config["storePathRootDir"] = str(tmp_path / "store")
    with EmbeddedCluster(tmp_path / "store", replicas=1, config=config) as embedded:
        yield embedded


@pytest.fixture
def administrator(cluster: EmbeddedCluster, directory: SecureDirectory) -> ClientConfig:
    account = properties.loads((directory.path / "conf" / "tools.yml").read_text().replace(": ", "="))
    return ClientConfig(
        name_server=cluster.name_server,
        access_key=account["accessKey"],
        secret_key=account["secretKey"],
        tls=TlsOptions(trust=directory.path / "ca.pem"),
    )


def sent(config: ClientConfig, count: int) -> None:
    """So many messages that the slave has, too."""
    with Admin(config=config) as admin:
        admin.topics.create("orders", queues=1, cluster="DefaultCluster")
    with Producer("p", config=config) as producer:
        until(lambda: producer.send(Message("orders", b"first")).status is SendStatus.SEND_OK)
        for number in range(count):
            assert producer.send(Message("orders", b"%d " % number * 20)).status is SendStatus.SEND_OK


def test_a_slave_has_the_log_and_the_topics_and_asks_for_accounts_itself(
    cluster: EmbeddedCluster, administrator: ClientConfig
) -> None:
    sent(administrator, 20)
    slave, master = cluster.slaves[0], cluster.brokers[0]
    until(lambda: slave.status.position == slave.status.master_position > 0)
    with RemotingClient(slave.address, tls=administrator.tls) as client:
        fields: dict[str, Any] = {"topic": "orders", "queueId": "0"}
        assert "No accessKey is configured" in str(client.request(RequestCode.GET_MAX_OFFSET, fields).remark)
        assert administrator.access_key is not None
        assert administrator.secret_key is not None
        account = Credentials(administrator.access_key, administrator.secret_key)
        until(lambda: client.request(RequestCode.GET_MAX_OFFSET, account.signed_fields(fields)).code == 0)
    cluster.stop()
    assert_same(Path(master.config.text("storePathRootDir")), Path(slave.config.text("storePathRootDir")))


def test_a_mirror_needs_tls_where_the_log_has_it(
    cluster: EmbeddedCluster, administrator: ClientConfig, tmp_path: Path
) -> None:
    sent(administrator, 20)
    with Mirror(tmp_path / "copies", config=administrator, once=True) as mirror:
        until(lambda: mirror.wait(0.1))
    assert_same(Path(cluster.brokers[0].config.text("storePathRootDir")), tmp_path / "copies" / "broker-a")
    port = cluster.brokers[0].config.number("haListenPort")
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain:
        plain.sendall(bytes(8))
        # a reset where the request was not read
        with suppress(ConnectionResetError):
            assert plain.recv(1) == b""


def test_a_mirror_without_tls_says_what_it_needs(directory: SecureDirectory, tmp_path: Path) -> None:
    # the broker's requests are plain, its log is not
    config = dict(line.split("=") for line in SMALL) | {
        "haUseTLS": "true",
        "tls.server.mode": "permissive",
        "tls.server.certPath": str(directory.path / "server.pem"),
        "tls.server.keyPath": str(directory.path / "server.key"),
    }
    with EmbeddedCluster(tmp_path / "store", config=config) as embedded:
        plain = ClientConfig(name_server=embedded.name_server)
        with (
            Mirror(tmp_path / "copies", config=plain) as mirror,
            pytest.raises(MirrorError, match=r"(?s)haUseTLS.*--tls-trust"),
        ):
            mirror.wait(PATIENCE)
        secured = replace(plain, tls=TlsOptions(trust=directory.path / "ca.pem"))
        with Mirror(tmp_path / "copies", config=secured, once=True) as mirror:
            assert mirror.wait(PATIENCE)


def test_a_log_with_tls_needs_a_certificate() -> None:
    with pytest.raises(ArgumentError, match=r"haUseTLS=true: expected TLS with tls\.server\.certPath"):
        EmbeddedCluster(config={"haUseTLS": "true", "tls.server.mode": "disabled"}).start()
