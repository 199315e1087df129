"""Ports that are free, and starts of a real RocketMQ that fail."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from tests.interop import rocketmq
from tests.interop.rocketmq import EPHEMERAL, RocketMQ, StartError, free_ports


def test_ports_are_free_with_those_beside_them_and_never_given_to_clients_by_the_kernel() -> None:
    low, high = map(int, EPHEMERAL.read_text().split())
    ports = sorted(free_ports(50))
    assert all(not low <= port + beside <= high for port in ports for beside in (-2, 1))
    assert all(after - before >= rocketmq.FAR_APART for before, after in itertools.pairwise(ports))
    for port in (port + beside for port in ports for beside in (-2, -1, 0, 1)):
        socket.create_server(("127.0.0.1", port)).close()


def test_a_port_beside_one_that_somebody_listens_at_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    with closing(socket.create_server(("127.0.0.2", taken + 1))):
        monkeypatch.setattr("random.sample", lambda *_: [taken, free])
        assert free_ports(1) == [free]


def children(directory: Path) -> list[int]:
    """Processes whose command line has the directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found += [int(entry.name)] if str(directory) in (entry / "cmdline").read_text() else []
            except OSError:
                continue
    return found


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_start_goes_to_other_ports_and_one_behind_a_crash_succeeds(tmp_path: Path) -> None:
    cluster = RocketMQ("4.9.4", tmp_path, clean=False)
    first = cluster.broker_port
    with closing(socket.create_server(("127.0.0.1", first - 2))), cluster:
        assert cluster.broker_port != first
        before = cluster.broker
        with RemotingClient(cluster.name_server) as client:
            assert cluster.broker.encode() in client.ask(106).body
        cluster.kill9()
        made = cluster.store / "consumequeue" / "orders" / "0" / f"{0:020}"
        made.parent.mkdir(parents=True)
        made.touch()  # the crash came between its name and its size
        cluster.start()
        assert cluster.broker == before
        assert len(children(tmp_path)) == 2
    assert children(tmp_path) == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_start_that_fails_says_what_the_broker_said_and_leaves_nothing_running(tmp_path: Path) -> None:
    name_server, broker = free_ports(2)
    cluster = RocketMQ("4.9.4", tmp_path, ports=(name_server, broker))
    with closing(socket.create_server(("127.0.0.1", broker))), pytest.raises(StartError) as told:
        cluster.start()
    assert f"127.0.0.1:{broker}" in str(told.value)
    assert str(told.value).count("BindException") == 1
    assert "The Name Server boot success" in str(told.value)
    assert children(tmp_path) == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_broker_beside_another_has_its_name_server_and_goes_alone(tmp_path: Path) -> None:
    first = RocketMQ("4.9.4", tmp_path / "a", clean=False)
    with first, RocketMQ("4.9.4", tmp_path / "b", clean=False, beside=first) as second:
        with RemotingClient(first.name_server) as client:
            brokers = decode(client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body)["brokerAddrTable"]
        assert {name: set(brokers[name]["brokerAddrs"].values()) for name in brokers} == {
            "broker-a": {first.broker},
            "broker-b": {second.broker},
        }
        second.kill9()
        assert (len(children(tmp_path / "a")), children(tmp_path / "b")) == (2, [])
