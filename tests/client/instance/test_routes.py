"""Routes as Python gives them to the table of an instance, and gets them back."""

from __future__ import annotations

from rmqfast._native import RouteTable, subscribe_queues
from rmqfast.client.instance import FoundBroker
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from tests.client.instance.doubles import route_of

#: c has no master, d may not be written, e may not be read, f is not among the brokers.
ROUTE = TopicRouteData(
    (
        QueueData("b", 3, 2, 6, 0),
        QueueData("a", 1, 2, 6, 0),
        QueueData("c", 1, 1, 6, 0),
        QueueData("d", 1, 1, 4, 0),
        QueueData("e", 1, 1, 2, 0),
        QueueData("f", 1, 1, 6, 0),
    ),
    (
        BrokerData("x", "a", {0: "a:1", 1: "a:2"}),
        BrokerData("x", "b", {0: "b:1"}),
        BrokerData("x", "c", {1: "c:2", 2: "c:3"}),
        BrokerData("x", "d", {0: "d:1"}),
        BrokerData("x", "e", {0: "e:1"}),
    ),
)


def test_a_consumer_sees_what_may_be_read_master_or_not() -> None:
    queues = subscribe_queues("t", ROUTE)
    seen = [(queue.broker_name, queue.queue_id) for queue in queues]
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("d", 0), ("f", 0)]
    assert {queue.topic for queue in queues} == {"t"}


def test_a_route_comes_back_as_it_was_and_is_new_once() -> None:
    table = RouteTable()
    assert table.get("t") is None
    assert table.put("t", ROUTE)
    assert table.get("t") == ROUTE
    turned = TopicRouteData(ROUTE.queue_datas[::-1], ROUTE.broker_datas[::-1])
    assert not table.put("t", turned)
    assert table.put("t", TopicRouteData(ROUTE.queue_datas, ROUTE.broker_datas, order_topic_conf="b:2;a:1"))


def test_a_topic_that_is_not_there_yet_gets_as_many_queues_as_it_would() -> None:
    table = RouteTable()
    for queues, expected in ((8, 4), (2, 2)):
        assert table.put("t", route_of("a", queues=queues), new_topic_queues=4)
        route = table.get("t")
        assert route is not None
        assert [(each.read_queue_nums, each.write_queue_nums) for each in route.queue_datas] == [(expected, expected)]


def test_brokers_are_found_by_who_asks() -> None:
    table = RouteTable()
    table.put("t", ROUTE)
    table.set_version("a", "a:1", 401)
    assert (table.publish_address("a"), table.publish_address("c")) == ("a:1", None)
    assert table.subscribe_address("a") == FoundBroker("a:1", False, 401)
    assert table.subscribe_address("c", 1, only_this=True) == FoundBroker("c:2", True, 0)
    assert table.subscribe_address("c", only_this=True) is None
    assert table.any_address("t") in {"a:1", "b:1", "c:2", "c:3", "d:1", "e:1"}
    assert table.any_address("unknown") is None
    assert table.version("a", "a:2") == 0


def test_addresses_are_where_they_are_reached_from_here() -> None:
    table = RouteTable(lambda address: f"gate-{address}")
    table.put("t", ROUTE)
    assert table.publish_address("a") == "gate-a:1"
    assert table.clean_offline_brokers() == []
    assert table.get("t") == ROUTE
    table.put("t", route_of("b"))
    assert set(table.clean_offline_brokers()) == {f"gate-{at}" for at in ("a:1", "a:2", "c:2", "c:3", "d:1", "e:1")}
    assert table.brokers() == {"b": {0: "gate-b:10911"}}
