"""Clients where connections are secret, where brokers want to know who asks, and where addresses are translated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.errors import ClientError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingClient, RequestCode, TlsOptions
from rmqfast.remoting.credentials import Credentials
from tests.broker.certificates import Authority, make_authority
from tests.client.accounts import SECRET, guarded_cluster
from tests.client.instance.doubles import FakeConsumer
from tests.waiting import until

BAD = "87654321"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def started() -> Iterator[Callable[[ClientConfig], ClientInstance]]:
    """Starts instances with a consumer, and ends them."""
    made: list[ClientInstance] = []

    def start(config: ClientConfig) -> ClientInstance:
        made.append(ClientInstance.of(config, config.client_id()))
        made[-1].register_consumer("cg", FakeConsumer("cg", "t"))
        made[-1].start()
        return made[-1]

    yield start
    for instance in made:
        instance.unregister_consumer("cg")
        instance.release()


def test_an_account_signs_all_requests_and_another_secret_is_refused(
    tmp_path: Path, started: Callable[[ClientConfig], ClientInstance], caplog: pytest.LogCaptureFixture
) -> None:
    with guarded_cluster(tmp_path, consumer1="PUB|SUB") as cluster:
        address = cluster.brokers[0].address
        fields = {"a": "P", "b": "t", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "k": "false"}
        with RemotingClient(address) as client:
            client.ask(RequestCode.SEND_MESSAGE_V2, Credentials("consumer1", SECRET).signed_fields(fields, b"x"), b"x")

        def instance(name: str, secret: str) -> ClientInstance:
            return started(
                ClientConfig(
                    name_server=cluster.name_server, instance_name=name, access_key="consumer1", secret_key=secret
                )
            )

        good, bad = instance("good@STREAM", SECRET), instance("bad", BAD)
        queue = MessageQueue("t", "broker-a", 0)
        until(lambda: good.routes.get("t"))
        until(good.send_heartbeats)
        assert good.find_consumer_ids("t", "cg") == [good.client_id]
        assert good.api.max_offset(address, queue) == 1
        good.api.update_consumer_offset(address, "cg", queue, 1)
        until(lambda: good.api.query_consumer_offset(address, "cg", queue) == 1)
        with pytest.raises(ResponseError, match="Check signature failed"):
            bad.api.max_offset(address, queue)
        assert not bad.routes.get("t")
        assert BAD not in caplog.text
        for each in (good, bad):
            each.unregister_consumer("cg")


def test_connections_with_tls_verify_whom_they_talk_to(
    authority: Authority, tmp_path: Path, started: Callable[[ClientConfig], ClientInstance]
) -> None:
    server, client = authority.server(), authority.client()
    config = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(server.certificate),
        "tls.server.keyPath": str(server.key),
        "tls.client.certPath": str(client.certificate),
        "tls.client.keyPath": str(client.key),
        "tls.client.trustCertPath": str(authority.certificate),
    }
    trusted, other = TlsOptions(trust=authority.certificate), make_authority(tmp_path / "other")
    with EmbeddedCluster(config={**config, "useTLS": "true"}) as cluster:
        name_server = cluster.name_server
        good = started(ClientConfig(name_server=name_server, instance_name="tls", tls=trusted))
        until(lambda: good.api.cluster_info().brokers)
        assert good.update_route("t", ("TBW102", 4))
        until(good.send_heartbeats)
        assert good.find_consumer_ids("t", "cg") == [good.client_id]
        for name, tls in (("plain", None), ("distrusted", TlsOptions(trust=other.certificate))):
            bad = started(ClientConfig(name_server=name_server, instance_name=name, tls=tls))
            with pytest.raises(ClientError, match=name_server):
                bad.update_route("t")
        good.unregister_consumer("cg")
