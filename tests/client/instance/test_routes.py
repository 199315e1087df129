"""Routes as name servers give them, and as the table of an instance has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rmqfast._native import NameServers
from rmqfast.client.instance import FoundBroker
from rmqfast.errors import ResponseError
from rmqfast.remoting import Response
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from tests.client.instance.doubles import FakeConnections, FakeNameServer, route_of

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


def answering(answer: Response) -> NameServers:
    return NameServers(["n:9876"], FakeConnections({"n:9876": answer}), print)


def test_a_consumer_sees_what_may_be_read_master_or_not() -> None:
    table = FakeNameServer(t=ROUTE).table()
    assert table.update("t")
    queues = table.readable_queues("t")
    seen = [(queue.broker_name, queue.queue_id) for queue in queues]
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("d", 0), ("f", 0)]
    assert {queue.topic for queue in queues} == {"t"}
    assert answering(Response(body=ROUTE.encode())).readable_queues("t", 3.0) == queues


def test_a_route_is_new_once_in_whatever_order() -> None:
    server = FakeNameServer(t=ROUTE)
    table = server.table()
    assert table.get("t") is None
    assert table.readable_queues("t") == ()
    assert table.update("t")
    assert table.get("t") == ROUTE
    server.routes["t"] = replace(ROUTE, queue_datas=ROUTE.queue_datas[::-1], broker_datas=ROUTE.broker_datas[::-1])
    assert not table.update("t")
    server.routes["t"] = replace(ROUTE, order_topic_conf="b:2;a:1")
    assert table.update("t")


@pytest.mark.parametrize("standard", [False, True])
def test_a_route_is_read_as_it_was_written(standard: bool) -> None:
    route = replace(ROUTE, order_topic_conf="b:2;a:1")
    assert answering(Response(body=route.encode(standard=standard))).route("t", 3.0) == route


def test_what_later_releases_add_to_a_route_is_passed_over() -> None:
    body = (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"1.2.3.4:10911"},"brokerName":"b","cluster":"c",'
        b'"enableActingMaster":false,"zoneName":"z"}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,'
        b'"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}],"topicQueueMappingByBroker":{}}'
    )
    assert answering(Response(body=body)).route("t", 3.0) == TopicRouteData(
        (QueueData("b", 8, 8, 6, 0),), (BrokerData("c", "b", {0: "1.2.3.4:10911"}),)
    )


@pytest.mark.parametrize("queues", ["2000000000", "-1", '"x"'])
def test_a_route_cannot_ask_for_more_queues_than_there_can_be(queues: str) -> None:
    body = f'{{"queueDatas":[{{"brokerName":"b","perm":6,"readQueueNums":{queues}}}]}}'.encode()
    with pytest.raises(ResponseError, match="readQueueNums"):
        answering(Response(body=body)).route("t", 3.0)


def test_brokers_are_found_by_who_asks() -> None:
    table = FakeNameServer(t=ROUTE).table()
    table.update("t")
    table.set_version("a", "a:1", 401)
    assert (table.publish_address("a"), table.publish_address("c")) == ("a:1", None)
    assert table.subscribe_address("a") == FoundBroker("a:1", False, 401)
    assert table.subscribe_address("c", 1, only_this=True) == FoundBroker("c:2", True, 0)
    assert table.subscribe_address("c", only_this=True) is None
    assert table.any_address("t") in {"a:1", "b:1", "c:2", "c:3", "d:1", "e:1"}
    assert table.any_address("unknown") is None
    assert table.version("a", "a:2") == 0


def test_addresses_are_where_they_are_reached_from_here() -> None:
    server = FakeNameServer(t=ROUTE)
    table = server.table(lambda address: f"gate-{address}")
    table.update("t")
    assert table.publish_address("a") == "gate-a:1"
    assert table.clean_offline_brokers() == []
    assert table.get("t") == ROUTE
    server.routes["t"] = route_of("b")
    table.update("t")
    assert set(table.clean_offline_brokers()) == {f"gate-{at}" for at in ("a:1", "a:2", "c:2", "c:3", "d:1", "e:1")}
    assert table.brokers() == {"b": {0: "gate-b:10911"}}
