"""Who is told of a client, and what."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rmqfast._native import RouteTable
from rmqfast.client.instance.api import ClientApi
from rmqfast.client.instance.heartbeats import Heartbeats, heartbeat_of, targets_of
from rmqfast.client.instance.members import Members
from rmqfast.errors import RemotingConnectError, ResponseError
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.heartbeat_data import HeartbeatData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from tests.client.instance.doubles import FakeConsumer, FakeNameServer, FakeProducer

BROKERS = {"a": {0: "a:1", 1: "a:2"}, "b": {1: "b:2"}}


class Told(ClientApi):
    """Notes who is told what; who is in `deaf` does not answer."""

    def __init__(self, *deaf: str, refusing: str = "") -> None:
        self.told: list[tuple[str, HeartbeatData]] = []
        self.deaf, self.refusing = set(deaf), refusing

    def send_heartbeat(self, address: str, heartbeat: HeartbeatData, *, timeout: float | None = None) -> int:
        self.told.append((address, heartbeat))
        if address in self.deaf:
            raise RemotingConnectError(address)
        if address == self.refusing:
            raise ResponseError(1, "Check signature failed")
        return 401


def heartbeats(
    api: Told, members: Members, on_failed: Callable[[str], None] = lambda _: None
) -> tuple[Heartbeats, RouteTable]:
    brokers = tuple(BrokerData("c", name, addresses) for name, addresses in BROKERS.items())
    routes = FakeNameServer(t=TopicRouteData((), brokers)).table()
    routes.update("t")
    return Heartbeats("me", members, routes, api, on_failed=on_failed), routes


def test_consumers_tell_all_addresses_producers_the_masters() -> None:
    assert targets_of(BROKERS, is_consumer=True) == [("a", "a:1"), ("a", "a:2"), ("b", "b:2")]
    assert targets_of(BROKERS, is_consumer=False) == [("a", "a:1")]


def test_nobody_is_told_where_there_is_neither_producer_nor_consumer() -> None:
    api = Told()
    sender, _ = heartbeats(api, Members())
    assert sender.send()
    assert api.told == []


def test_a_heartbeat_says_all_groups_and_subscriptions() -> None:
    members = Members()
    members.add_consumer("cg", FakeConsumer("cg", "t", "%RETRY%cg"))
    members.add_producer("pg", FakeProducer())
    heartbeat = heartbeat_of("me", members)
    assert (heartbeat.client_id, heartbeat.producers) == ("me", ("pg",))
    assert [subscription.topic for subscription in heartbeat.consumers[0].subscriptions] == ["t", "%RETRY%cg"]
    assert HeartbeatData.of_body(heartbeat.encode(), now=0) == heartbeat


def test_a_broker_that_does_not_answer_does_not_keep_it_from_the_others() -> None:
    members, api = Members(), Told("a:1", refusing="b:2")
    members.add_consumer("cg", FakeConsumer("cg", "t"))
    failed: list[str] = []
    sender, routes = heartbeats(api, members, failed.append)
    assert not sender.send()
    assert failed == ["a:1"]
    assert [address for address, _ in api.told] == ["a:1", "a:2", "b:2"]
    assert (routes.version("a", "a:1"), routes.version("a", "a:2")) == (0, 401)


def test_one_address_alone_is_told_if_it_is_a_brokers() -> None:
    members, api = Members(), Told()
    members.add_consumer("cg", FakeConsumer("cg", "t"))
    sender, _ = heartbeats(api, members)
    assert sender.send("a:2")
    assert sender.send("a name server:9876")
    assert [address for address, _ in api.told] == ["a:2"]


def test_a_second_heartbeat_at_the_same_time_is_sent_to_all_behind_the_first() -> None:
    members, results = Members(), list[bool]()
    members.add_consumer("cg", FakeConsumer("cg", "t"))

    class Interrupted(Told):
        """Another thread sends while the first heartbeat is on its way."""

        def send_heartbeat(self, address: str, heartbeat: HeartbeatData, *, timeout: float | None = None) -> int:
            if not results:
                other = threading.Thread(target=lambda: results.append(sender.send()))
                other.start()
                other.join()
            return super().send_heartbeat(address, heartbeat, timeout=timeout)

    api = Interrupted()
    sender, _ = heartbeats(api, members)
    assert sender.send("a:1")
    assert results == [False]
    assert [address for address, _ in api.told] == ["a:1", "a:1", "a:2", "b:2"]
