"""What producers and consumers make of routes, and where brokers are."""

from __future__ import annotations

import pytest

from rmqfast.client.instance.routes import FoundBroker, RouteTable, clamped, publish_info_of, subscribe_queues_of
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


def test_a_producer_sees_what_may_be_written_and_has_a_master_broker_by_broker() -> None:
    info = publish_info_of("t", ROUTE)
    assert [(queue.broker_name, queue.queue_id) for queue in info.queues] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
        ("e", 0),
    ]
    assert not info.is_ordered
    assert info.is_ok
    assert (info.write_queue_nums("b"), info.write_queue_nums("z")) == (2, -1)


def test_a_consumer_sees_what_may_be_read_master_or_not() -> None:
    queues = subscribe_queues_of("t", ROUTE)
    seen = [(queue.broker_name, queue.queue_id) for queue in queues]
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("d", 0), ("f", 0)]


def test_an_ordered_topic_has_the_queues_that_the_name_server_says() -> None:
    route = TopicRouteData(ROUTE.queue_datas, ROUTE.broker_datas, order_topic_conf="b:2;a:1")
    info = publish_info_of("t", route)
    assert [(queue.broker_name, queue.queue_id) for queue in info.queues] == [("b", 0), ("b", 1), ("a", 0)]
    assert info.is_ordered


@pytest.mark.parametrize("conf", ["b", "b:", "b:x", ":", ";;", "b:99999999999"])
def test_an_order_that_says_nothing_is_no_queue_and_no_error(conf: str) -> None:
    assert not publish_info_of("t", TopicRouteData((), (), order_topic_conf=conf)).queues


def test_a_topic_that_is_not_there_yet_gets_as_many_queues_as_it_would() -> None:
    assert [q.write_queue_nums for q in clamped(route_of("a", queues=8), 4).queue_datas] == [4]
    assert [q.read_queue_nums for q in clamped(route_of("a", queues=2), 4).queue_datas] == [2]


@pytest.fixture
def table() -> RouteTable:
    table = RouteTable()
    table.put("t", ROUTE)
    return table


def test_a_producer_finds_masters_only(table: RouteTable) -> None:
    assert table.publish_address("a") == "a:1"
    assert table.publish_address("c") is None
    assert table.publish_address("z") is None


@pytest.mark.parametrize(
    ("broker", "broker_id", "only_this", "found"),
    [
        ("a", 0, False, FoundBroker("a:1", False, 0)),
        ("a", 1, False, FoundBroker("a:2", True, 0)),
        ("c", 0, False, FoundBroker("c:2", True, 0)),  # any other
        ("c", 0, True, None),
        ("c", 1, True, FoundBroker("c:2", True, 0)),
        ("a", 5, False, FoundBroker("a:1", False, 0)),
        ("a", 5, True, None),
        ("z", 0, False, None),
    ],
)
def test_a_consumer_finds_the_one_the_next_one_or_any(
    table: RouteTable, broker: str, broker_id: int, only_this: bool, found: FoundBroker | None
) -> None:
    assert table.subscribe_address(broker, broker_id, only_this=only_this) == found


def test_the_slave_with_the_next_id_is_tried_before_any_other(table: RouteTable) -> None:
    table.put("t", TopicRouteData((), (BrokerData("x", "s", {0: "s:0", 3: "s:3"}),)))
    assert table.subscribe_address("s", 2, only_this=True) == FoundBroker("s:3", True, 0)


def test_the_release_of_a_broker_is_known_once_a_heartbeat_was_answered(table: RouteTable) -> None:
    table.set_version("a", "a:1", 401)
    assert table.subscribe_address("a") == FoundBroker("a:1", False, 401)
    assert table.version("a", "a:2") == 0


def test_one_of_a_topics_brokers_is_its_master_or_else_a_slave(table: RouteTable) -> None:
    assert table.any_address("t", lambda listed: listed[0]) == "a:1"
    assert table.any_address("t", lambda listed: "c" if "c" in listed else listed[-1]) == "c:3"
    assert table.any_address("unknown") is None


def test_addresses_in_no_route_any_more_are_forgotten(table: RouteTable) -> None:
    table.set_version("a", "a:2", 401)
    table.put("t", TopicRouteData((), (BrokerData("x", "b", {0: "b:1"}),)))
    assert set(table.clean_offline_brokers()) == {"a:1", "a:2", "c:2", "c:3", "d:1", "e:1"}
    assert table.brokers() == {"b": {0: "b:1"}}
    assert table.version("a", "a:2") == 0


def test_addresses_are_where_they_are_reached_from_here() -> None:
    table = RouteTable(lambda address: f"gate-{address}")
    table.put("t", ROUTE)
    assert table.publish_address("a") == "gate-a:1"
    assert table.clean_offline_brokers() == []
    assert table.get("t") == ROUTE
