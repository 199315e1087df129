"""A cluster as programs use it: several brokers and name servers, starts that fail, ends under load, forks."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster, Message, open_store
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.errors import ArgumentError, ForkError, RemotingError, StoreBusyError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, Request, RequestCode
from rmqfast.store.config import TopicConfig
from tests.embedded.client import address_of, broker_threads, pull, pull_fields, route, send, until

SMALL = {"mappedFileSizeCommitLog": "1048576", "maxHashSlotNum": "1000", "maxIndexNum": "4000"}


def config(root: Path, **values: str) -> BrokerConfig:
    own = {"storePathRootDir": str(root), "listenPort": "0", "brokerName": "broker-a"}
    return BrokerConfig(SMALL | own | values)


def knows_both(name_server: str) -> bool:
    return set(route(name_server, "orders")) == {"broker-a", "broker-b"}


def test_every_name_server_knows_the_topics_of_every_broker() -> None:
    with EmbeddedCluster(brokers=2, name_servers=2) as cluster:
        for broker in cluster.brokers:
            assert send(broker.address, "orders", b"paid").code == 0
        for name_server in cluster.name_server.split(";"):
            until(partial(knows_both, name_server))


def test_what_is_sent_is_pulled_and_a_held_pull_is_woken() -> None:
    with EmbeddedCluster() as cluster:
        address = address_of(cluster)
        assert send(address, "orders", b"first").code == 0
        assert b"first" in pull(address, "orders").body
        sender = threading.Timer(0.2, send, (address, "orders", b"second"))
        sender.start()
        begun = time.monotonic()
        assert b"second" in pull(address, "orders", offset=1, suspend=15_000).body
        assert time.monotonic() - begun < 4
        sender.join()


def test_a_message_that_was_tried_too_often_goes_to_the_dead_letters() -> None:
    with EmbeddedCluster() as cluster:
        address = address_of(cluster)
        assert send(address, "%RETRY%G", b"again", tries=3).code == 0
        assert send(address, "%RETRY%G", b"enough", tries=17).code == 0
        assert b"again" in pull(address, "%RETRY%G").body
        assert b"enough" not in pull(address, "%RETRY%G").body
        cluster.brokers[0].tables.topics.update(TopicConfig(topic_name="%DLQ%G", read_queue_nums=1, write_queue_nums=1))
        assert b"enough" in pull(address, "%DLQ%G").body


def test_a_cluster_starts_and_stops_in_a_moment_and_leaves_nothing() -> None:
    EmbeddedCluster().start().stop()
    before = broker_threads()
    begun = time.monotonic()
    cluster = EmbeddedCluster().start()
    root = cluster.brokers[0].tables.root
    cluster.stop()
    assert time.monotonic() - begun < 1  # 40 ms on an idle machine
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
        _ = broker.tables
    with pytest.raises(ArgumentError, match="brokers"):
        EmbeddedCluster(brokers=0)


def test_a_port_that_is_taken_is_told_before_anything_is_made(tmp_path: Path) -> None:
    before = broker_threads()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RemotingError, match=f"127.0.0.1:{port}: "):
            Broker(config(tmp_path / "store", listenPort=str(port))).start()
        with pytest.raises(RemotingError, match=str(port)):
            EmbeddedCluster(tmp_path / "other", name_server_port=port).start()
        with pytest.raises(RemotingError, match=str(port)):
            EmbeddedCluster(tmp_path / "third", broker_port=port, config=SMALL).start()
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "third" / "commitlog").exists()
    until(lambda: broker_threads() <= before)


def test_a_store_that_somebody_has_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with Broker(config(tmp_path)) as owner:
        before = broker_threads()
        second = Broker(config(tmp_path))
        with pytest.raises(StoreBusyError):
            second.start()
        until(lambda: broker_threads() <= before)
        assert (tmp_path / "abort").exists()
        assert send(owner.address, "orders", b"still").code == 0
    assert not (tmp_path / "abort").exists()


def test_a_start_that_fails_late_gives_the_store_back(tmp_path: Path) -> None:
    with Broker(config(tmp_path)):
        pass
    for name in ("subscriptionGroup.json", "subscriptionGroup.json.bak"):
        (tmp_path / "config" / name).write_text("{broken")
    before = broker_threads()
    with pytest.raises(Exception, match=r"subscriptionGroup\.json"):
        Broker(config(tmp_path)).start()
    assert not (tmp_path / "abort").exists()
    until(lambda: broker_threads() <= before)
    with open_store(tmp_path, mode="a") as store:
        store.append(Message("orders", b"free"))


def who_does_not_read(address: str) -> socket.socket:
    """A client that asks for 8 MiB and leaves them in its socket."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    for opaque in range(2_000):
        header = b'{"code":26,"flag":0,"opaque":%d,"version":401,"language":"JAVA"}' % opaque
        connection.sendall(struct.pack(">II", 4 + len(header), len(header)) + header)
    return connection


def test_a_broker_under_load_closes_in_less_than_five_seconds(tmp_path: Path) -> None:
    broker = Broker(config(tmp_path, brokerPermission="6"))
    address = broker.start()
    assert send(address, "orders", b"x" * 1000).code == 0
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            try:
                send(address, "orders", b"y" * 1000)
            except RemotingError:
                return

    senders = [threading.Thread(target=go_on) for _ in range(4)]
    clients = [RemotingClient(address) for _ in range(20)]
    for client in clients:
        client.send_oneway(RequestCode.PULL_MESSAGE, pull_fields("orders", queue_id=1, suspend=60_000))
    deaf = [who_does_not_read(address) for _ in range(4)]
    for sender in senders:
        sender.start()
    time.sleep(0.3)
    begun = time.monotonic()
    broker.stop()
    assert time.monotonic() - begun < 5
    ended.set()
    for sender in senders:
        sender.join(10)
    for silent in deaf:
        silent.close()
    assert not (tmp_path / "abort").exists()


def test_a_request_that_takes_its_time_does_not_hold_the_end_up(tmp_path: Path) -> None:
    ended, stuck = threading.Event(), threading.Semaphore(0)

    def check(_request: Request) -> None:
        stuck.release()
        ended.wait(30)

    broker = Broker(config(tmp_path), check=check)
    address = broker.start()
    clients = [RemotingClient(address) for _ in range(8)]
    for client in clients:
        client.send_oneway(RequestCode.GET_BROKER_CONFIG)
        assert stuck.acquire(timeout=5)
    begun = time.monotonic()
    broker.stop()
    assert time.monotonic() - begun < 5
    assert not (tmp_path / "abort").exists()
    ended.set()


def test_a_name_server_that_is_down_does_not_hold_the_start_up_and_is_told_later(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with NameServer(NamesrvConfig(kv_config_path=str(tmp_path / "kv-1.json"), listen_port=0)) as up:
        addresses = f"127.0.0.1:{port};{up.address}"
        begun = time.monotonic()
        with Broker(config(tmp_path / "store", namesrvAddr=addresses)) as broker:
            assert time.monotonic() - begun < 3
            assert "broker-a" in route(up.address, "TBW102")
            with NameServer(NamesrvConfig(kv_config_path=str(tmp_path / "kv-2.json"), listen_port=port)) as late:
                until(lambda: "broker-a" in route(late.address, "TBW102"))
                assert send(broker.address, "orders", b"x").code == 0
                until(lambda: route(late.address, "orders") and route(up.address, "orders"))


def test_a_name_server_that_never_answers_delays_the_start_by_its_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        with Broker(config(tmp_path, namesrvAddr=address, registerBrokerTimeoutMills="500")):
            assert 0.4 < time.monotonic() - begun < 3
            stopping = time.monotonic()
        assert time.monotonic() - stopping < 4


def test_a_name_server_that_never_answers_holds_up_what_another_is_told_once_only(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        NameServer(NamesrvConfig(kv_config_path=str(tmp_path / "kv.json"), listen_port=0)) as up,
    ):
        addresses = f"127.0.0.1:{silent.getsockname()[1]};{up.address}"
        own = config(tmp_path / "store", namesrvAddr=addresses, registerBrokerTimeoutMills="2000")
        with Broker(own) as broker:
            begun = time.monotonic()
            for name in ("first", "second", "third"):
                assert send(broker.address, name, b"x").code == 0
            broker.tables.topics.update(TopicConfig(topic_name="fourth"))
            assert route(up.address, "fourth")
            until(lambda: route(up.address, "third"))
            assert time.monotonic() - begun < 2


def test_a_name_server_that_forgot_all_is_told_all_again_with_one_topic(tmp_path: Path) -> None:
    names = NamesrvConfig(kv_config_path=str(tmp_path / "kv.json"), listen_port=0)
    first = NameServer(names)
    address = first.start()
    with Broker(config(tmp_path / "store", namesrvAddr=address)) as broker:
        first.stop()
        names.listen_port = int(address.rpartition(":")[2])
        topics = broker.tables.topics
        topics.update(TopicConfig(topic_name="unheard"))
        with NameServer(names):
            topics.update(TopicConfig(topic_name="one"))
            until(lambda: all(route(address, name) for name in ("one", "unheard", "TBW102")))


def test_after_a_fork_everything_says_so() -> None:
    with EmbeddedCluster() as cluster:
        broker = cluster.brokers[0]
        root = broker.tables.root
        calls = (cluster.stop, cluster.start, broker.stop, broker.start, broker.register, lambda: broker.tables)
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
