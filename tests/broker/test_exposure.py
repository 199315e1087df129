"""Servers that other machines reach: refused without access control, or open for clients and not for administrators."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.acl.exposure import exposure_check
from rmqfast.acl.rights import RIGHTS
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import Request, RequestCode
from tests.broker.client_doubles import Line
from tests.embedded.client import pull, send

ALL = "0.0.0.0"  # noqa: S104 - what this is about
OPEN = {"bindAddress": ALL, "insecureBind": "true"}


def test_a_broker_and_a_name_server_do_not_stand_open_by_themselves(tmp_path: Path) -> None:
    for start in (
        lambda: Broker(BrokerConfig({"bindAddress": ALL, "storePathRootDir": str(tmp_path)})).start(),
        lambda: NameServer(NamesrvConfig(bind_address=ALL, kv_config_path=str(tmp_path / "kv"))),
        lambda: EmbeddedCluster(config={"bindAddress": "::"}).start(),
    ):
        with pytest.raises(
            ArgumentError, match=r"bindAddress=.*expected loopback, or aclEnable=true .* --insecure-bind"
        ):
            start()
    assert not (tmp_path / "commitlog").exists()


@pytest.fixture(scope="module")
def address() -> str:
    """An address of this machine that is none of loopback's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        host: str = probe.getsockname()[0]
    return host


def test_who_is_told_to_serves_clients_and_warns_at_each_start(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedCluster(config=OPEN) as cluster:
        broker = cluster.brokers[0].address
        assert send(broker, "orders", b"x").code == 0
        assert b"x" in pull(broker, "orders").body
    assert caplog.text.count("without access control (insecureBind)") == 2  # the name server's and the broker's


def test_administrators_of_other_machines_are_refused_and_clients_are_not() -> None:
    check = exposure_check(ALL, is_checked=False, is_allowed=True)
    assert check is not None
    admin = {code for code, right in RIGHTS.items() if right.strict.admin}
    refused = admin - {RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER}
    assert {RequestCode.UPDATE_BROKER_CONFIG, RequestCode.PUT_KV_CONFIG, RequestCode.DELETE_TOPIC_IN_BROKER} <= refused
    for code in RequestCode:
        check(Request(code, {}, b"", Line("127.0.0.1:5")))
        check(Request(code, {}, b"", Line("[::1]:5")))
        far = Request(code, {}, b"", Line("192.0.2.7:5"))
        if code in refused:
            with pytest.raises(ResponseError, match=r"CODE: 16 .*aclEnable=true"):
                check(far)
        else:
            check(far)


def test_all_listens_at_loopback_unless_told_otherwise(address: str) -> None:
    with EmbeddedCluster() as cluster:
        for server in (cluster.name_server, cluster.brokers[0].address):
            host, _, port = server.rpartition(":")
            assert host == "127.0.0.1"
            if address != "127.0.0.1":
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((address, int(port)), timeout=10)
