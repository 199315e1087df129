"""A broker and its name server with TLS: by their properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.errors import ArgumentError, ChannelClosedError, TlsFileError
from rmqfast.remoting import RemotingClient, RequestCode, TlsOptions
from rmqfast.remoting.fastjson import decode

from .certificates import Authority


def mutual(authority: Authority) -> dict[str, str]:
    server, client = authority.server(), authority.client()
    return {
        "tls.server.certPath": str(server.certificate),
        "tls.server.keyPath": str(server.key),
        "tls.server.need.client.auth": "require",
        "tls.server.trustCertPath": str(authority.certificate),
        "tls.client.certPath": str(client.certificate),
        "tls.client.keyPath": str(client.key),
        "tls.client.trustCertPath": str(authority.certificate),
    }


def brokers(name_server: str, tls: TlsOptions | None) -> list[str]:
    """Names of the brokers that a name server knows."""
    with RemotingClient(name_server, tls=tls) as client:
        return list(decode(client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body)["brokerAddrTable"])


def test_a_cluster_that_is_told_nothing_takes_plain_connections_and_tls() -> None:
    with EmbeddedCluster() as cluster:
        for address in (cluster.name_server, cluster.brokers[0].address):
            for tls in (None, TlsOptions(verify=False)):
                with RemotingClient(address, tls=tls) as client:
                    assert client.request(-1).code == 3
        assert brokers(cluster.name_server, None) == ["broker-a"]


def test_in_a_cluster_that_enforces_tls_the_broker_shows_the_name_server_who_it_is(authority: Authority) -> None:
    client = authority.client()
    known = TlsOptions(certificate=client.certificate, key=client.key, trust=authority.certificate)
    with EmbeddedCluster(config=mutual(authority)) as cluster:
        assert brokers(cluster.name_server, known) == ["broker-a"]
        broker = cluster.brokers[0]
        vip = f"127.0.0.1:{broker.config.number('listenPort') - 2}"
        for address in (cluster.name_server, broker.address, vip):
            with RemotingClient(address, tls=known) as asked:
                assert asked.request(-1).code == 3
            with pytest.raises(ChannelClosedError):
                RemotingClient(address).request(-1)


def test_a_broker_tells_the_properties_that_it_was_given_and_no_request_changes_them(tmp_path: Path) -> None:
    config = {"storePathRootDir": str(tmp_path), "tls.server.mode": "permissive", "listenPort": "0"}
    sizes = {"mappedFileSizeCommitLog": "1048576", "maxHashSlotNum": "1000", "maxIndexNum": "4000"}
    with Broker(BrokerConfig(config | sizes)) as broker, RemotingClient(broker.address) as client:
        client.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"tls.server.mode=disabled\ntls.server.keyPath=/etc/passwd\n")
        told = client.ask(RequestCode.GET_BROKER_CONFIG).body.decode().splitlines()
        assert [line for line in told if line.startswith("tls")] == ["tls.server.mode=permissive"]


def test_a_cluster_does_not_start_with_what_is_of_no_use(authority: Authority, tmp_path: Path) -> None:
    with (
        pytest.raises(TlsFileError, match=r"no\.key: key: expected a file that can be read"),
        EmbeddedCluster(tmp_path / "one", config=mutual(authority) | {"tls.server.keyPath": str(tmp_path / "no.key")}),
    ):
        pass
    with (
        pytest.raises(ArgumentError, match=r"tls\.client\.trustCertPath: expected a file of authorities"),
        EmbeddedCluster(tmp_path / "two", config=mutual(authority) | {"tls.client.trustCertPath": ""}),
    ):
        pass
