"""Servers that other machines reach: refused without access control, or open for clients and not for administrators."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.acl.access_validator import exposure_check
from rmqfast.acl.rights import RIGHTS
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import Request, RequestCode
from tests import elsewhere
from tests.broker.client_doubles import Line

ALL = "0.0.0.0"  # noqa: S104 - what this is about


def test_a_broker_and_a_name_server_do_not_stand_open_by_themselves(tmp_path: Path) -> None:
    with socket.create_server((ALL, 0)) as taken:  # a port in use is not told first
        port = taken.getsockname()[1]
        own = {"bindAddress": ALL, "listenPort": str(port), "storePathRootDir": str(tmp_path)}
        for start in (
            lambda: Broker(BrokerConfig(own)).start(),
            lambda: NameServer(NamesrvConfig(bind_address=ALL, listen_port=port, kv_config_path=str(tmp_path / "kv"))),
            lambda: EmbeddedCluster(config={"bindAddress": "::"}).start(),
        ):
            with pytest.raises(
                ArgumentError, match=r"bindAddress=.*expected loopback, or aclEnable=true .* --insecure-bind"
            ):
                start()
    assert not (tmp_path / "commitlog").exists()


ASKING = f"""
import logging
from rmqfast import EmbeddedCluster, Message, Producer
from rmqfast.remoting import RemotingClient, RequestCode
logging.basicConfig()
config = {{"bindAddress": "0.0.0.0", "brokerIP1": "{elsewhere.ADDRESS}", "insecureBind": "true"}}
with EmbeddedCluster(config=config) as cluster:
    broker, name_server = (address.rpartition(":")[2] for address in (cluster.brokers[0].address, cluster.name_server))
    with Producer("p", name_server=f"{elsewhere.ADDRESS}:{{name_server}}") as producer:
        print(producer.send(Message("orders", b"x")).status.name)
    for host in ("{elsewhere.ADDRESS}", "127.0.0.1"):
        for port, code in ((broker, RequestCode.GET_BROKER_CONFIG), (name_server, RequestCode.GET_NAMESRV_CONFIG)):
            with RemotingClient(f"{{host}}:{{port}}") as client:
                print(client.request(code).code)
"""


def test_from_another_address_clients_work_and_administrators_do_not() -> None:
    done = elsewhere.run_python(ASKING)
    assert done.stdout.split() == ["SEND_OK", "16", "16", "0", "0"], done.stderr
    assert done.stderr.count("without access control (insecureBind)") == 2  # the name server's and the broker's


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


LISTENING = """
import pathlib
from rmqfast import EmbeddedCluster
with EmbeddedCluster():
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                print(words[1].partition(":")[0])
"""


def test_all_listens_at_loopback_unless_told_otherwise() -> None:
    done = elsewhere.run_python(LISTENING)
    # in a network of its own nobody else listens: the name server, the broker, its second port, that for slaves
    assert done.stdout.split() == ["0100007F"] * 4, done.stderr
