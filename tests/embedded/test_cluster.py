"""A cluster as programs use it: several brokers and name servers, starts that fail, ends under load, forks."""

from __future__ import annotations

import os
import socket
import struct
import threading
from functools import partial
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster, Message, open_store
from rmqfast.broker import Broker
from rmqfast.broker.registration import registrar
from rmqfast.broker.registration.registrar import NameServers
from rmqfast.errors import ArgumentError, ForkError, RemotingError, StoreBusyError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, Request, RequestCode
from rmqfast.remoting import server as remoting_server
from rmqfast.store.config import TopicConfig
from tests.embedded.client import SMALL, address_of, broker_config, broker_threads, pull, pull_fields, route, send
from tests.remoting.held_port import held_port
from tests.waiting import PATIENCE, until


def knows_both(name_server: str) -> bool:
    return set(route(name_server, "orders")) == {"broker-a", "broker-b"}


def test_every_name_server_knows_the_built_in_topics() -> None:
    with EmbeddedCluster(brokers=2, name_servers=2) as cluster:
        for broker in cluster.brokers:
            assert send(broker.address, "orders", b"paid").code == 0
        for name_server in cluster.name_server.split(";"):
            until(partial(knows_both, name_server))


def test_a_message_that_was_tried_too_often_goes_to_the_dead_letters() -> None:
    with EmbeddedCluster() as cluster:
        address = address_of(cluster)
        assert send(address, "%RETRY%G", b"again", tries=3).code == 0
        assert send(address, "%RETRY%G", b"enough", tries=17).code == 0
        assert b"again" in pull(address, "%RETRY%G").body
        assert b"enough" not in pull(address, "%RETRY%G").body
        cluster.brokers[0].state.topics.update(TopicConfig(topic_name="%DLQ%G", read_queue_nums=1, write_queue_nums=1))
        assert b"enough" in pull(address, "%DLQ%G").body


def test_a_cluster_that_stops_leaves_nothing() -> None:
    before = broker_threads()
    cluster = EmbeddedCluster().start()
    root = cluster.brokers[0].state.root
    assert broker_threads() - before
    cluster.stop()
    cluster.stop()
    assert not root.exists()
    until(lambda: broker_threads() <= before)


def test_a_cluster_that_is_used_wrongly_says_so() -> None:
    with EmbeddedCluster() as cluster:
        with pytest.raises(ArgumentError, match="started once"):
            cluster.start()
        with pytest.raises(ArgumentError, match="started once"):
            cluster.brokers[0].start()
        broker = cluster.brokers[0]
    with pytest.raises(ArgumentError, match="started once"):
        cluster.start()
    with pytest.raises(ArgumentError, match="does not run"):
        _ = broker.state
    with pytest.raises(ArgumentError, match="brokers"):
        EmbeddedCluster(brokers=0)


def test_a_port_that_is_taken_is_told_before_anything_is_made(tmp_path: Path) -> None:
    before = broker_threads()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RemotingError, match=f"127.0.0.1:{port}: "):
            Broker(broker_config(tmp_path / "store", listenPort=str(port))).start()
        with pytest.raises(RemotingError, match=str(port)):
            EmbeddedCluster(tmp_path / "other", name_server_port=port).start()
        with pytest.raises(RemotingError, match=str(port)):
            EmbeddedCluster(tmp_path / "third", broker_port=port, config=SMALL).start()
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "third" / "commitlog").exists()
    until(lambda: broker_threads() <= before)


def test_a_store_that_somebody_has_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with Broker(broker_config(tmp_path)) as owner:
        before = broker_threads()
        second = Broker(broker_config(tmp_path))
        with pytest.raises(StoreBusyError):
            second.start()
        until(lambda: broker_threads() <= before)
        assert (tmp_path / "abort").exists()
        assert send(owner.address, "orders", b"still").code == 0
    assert not (tmp_path / "abort").exists()


def test_a_start_that_fails_late_gives_the_store_back(tmp_path: Path) -> None:
    with Broker(broker_config(tmp_path)):
        pass
    for name in ("subscriptionGroup.json", "subscriptionGroup.json.bak", "metadata.db"):
        (tmp_path / "config" / name).write_text("{broken")
    before = broker_threads()
    with pytest.raises(Exception, match=r"subscriptionGroup\.json"):
        Broker(broker_config(tmp_path)).start()
    assert not (tmp_path / "abort").exists()
    until(lambda: broker_threads() <= before)
    with open_store(tmp_path, mode="a") as store:
        store.append(Message("orders", b"free"))


def who_does_not_read(address: str) -> socket.socket:
    """A client that asks for a megabyte and leaves it where it is."""
    host, _, port = address.rpartition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((host, int(port)))
    for opaque in range(250):
        header = b'{"code":26,"flag":0,"opaque":%d,"version":401,"language":"JAVA"}' % opaque
        connection.sendall(struct.pack(">II", 4 + len(header), len(header)) + header)
    return connection


def test_a_broker_under_load_closes(tmp_path: Path) -> None:
    broker = Broker(broker_config(tmp_path, brokerPermission="6"))
    address = broker.start()
    assert send(address, "orders", b"x" * 1000).code == 0
    at_work = threading.Semaphore(0)

    def go_on() -> None:
        while True:
            try:
                send(address, "orders", b"y" * 1000)
            except RemotingError:
                return
            at_work.release()

    senders = [threading.Thread(target=go_on) for _ in range(4)]
    clients = [RemotingClient(address) for _ in range(20)]
    for client in clients:
        client.send_oneway(RequestCode.PULL_MESSAGE, pull_fields("orders", queue_id=1, suspend=60_000))
    deaf = [who_does_not_read(address) for _ in range(4)]
    for sender in senders:
        sender.start()
    for _ in range(40):
        assert at_work.acquire(timeout=PATIENCE)
    until(lambda: broker.state.data_plane.parked_pulls == 20)
    broker.stop()
    for sender in senders:
        sender.join(PATIENCE)
        assert not sender.is_alive()
    for silent in deaf:
        silent.close()
    assert not (tmp_path / "abort").exists()


def test_a_request_that_never_ends_does_not_hold_the_end_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remoting_server, "_PATIENCE", 0.1)
    ended, stuck = threading.Event(), threading.Semaphore(0)

    def check(_request: Request) -> None:
        stuck.release()
        ended.wait()

    broker = Broker(broker_config(tmp_path), check=check)
    address = broker.start()
    clients = [RemotingClient(address) for _ in range(8)]
    for client in clients:
        client.send_oneway(RequestCode.GET_BROKER_CONFIG)
        assert stuck.acquire(timeout=PATIENCE)
    broker.stop()
    assert not (tmp_path / "abort").exists()
    ended.set()


def test_a_name_server_that_is_down_is_told_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registrar, "_RETRY_INTERVAL", 0.05)
    with (
        held_port() as down,
        NameServer(NamesrvConfig(kv_config_path=str(tmp_path / "kv-1.json"), listen_port=0)) as up,
        Broker(broker_config(tmp_path / "store", namesrvAddr=f"{down};{up.address}")) as broker,
    ):
        assert "broker-a" in route(up.address, "TBW102")
        port = int(down.rpartition(":")[2])
        with NameServer(NamesrvConfig(kv_config_path=str(tmp_path / "kv-2.json"), listen_port=port)) as late:
            until(lambda: "broker-a" in route(late.address, "TBW102"))
            assert send(broker.address, "orders", b"x").code == 0
            until(lambda: route(late.address, "orders") and route(up.address, "orders"))


def test_a_name_server_that_never_answers_holds_the_start_up_once_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        NameServer(NamesrvConfig(kv_config_path=str(tmp_path / "kv.json"), listen_port=0)) as up,
    ):
        addresses = f"127.0.0.1:{silent.getsockname()[1]};{up.address}"
        own = broker_config(tmp_path / "store", namesrvAddr=addresses, registerBrokerTimeoutMills="200")
        with Broker(own) as broker:
            # whoever waited for it from now on would wait for ever
            monkeypatch.setattr(NameServers, "_timeout", lambda _: 3600.0)
            for name in ("first", "second", "third"):
                assert send(broker.address, name, b"x").code == 0
            broker.state.topics.update(TopicConfig(topic_name="fourth"))
            until(lambda: all(route(up.address, name) for name in ("first", "second", "third", "fourth")))


def test_a_name_server_that_forgot_all_is_told_all_again_with_one_topic(tmp_path: Path) -> None:
    with held_port() as address:
        names = NamesrvConfig(kv_config_path=str(tmp_path / "kv.json"), listen_port=int(address.rpartition(":")[2]))
        first = NameServer(names)
        first.start()
        with Broker(broker_config(tmp_path / "store", namesrvAddr=address)) as broker:
            first.stop()
            topics = broker.state.topics
            topics.update(TopicConfig(topic_name="unheard"))
            with NameServer(names):
                topics.update(TopicConfig(topic_name="one"))
                until(lambda: all(route(address, name) for name in ("one", "unheard", "TBW102")))


def test_after_a_fork_everything_says_so() -> None:
    with EmbeddedCluster() as cluster:
        broker = cluster.brokers[0]
        root = broker.state.root
        calls = (cluster.stop, cluster.start, broker.stop, broker.start, broker.register, lambda: broker.state)
        child = os.fork()
        if child == 0:
            refused = 0
            for call in calls:
                try:
                    call()
                except ForkError:
                    refused += 1
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)
        assert root.exists()
        assert send(broker.address, "orders", b"x").code == 0
