"""When routes are asked for, what becomes of the answers, and what where there is none."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from rmqfast._native import RouteTable
from rmqfast.client.instance.members import Members
from rmqfast.client.instance.routes import LATER, SOON, RouteUpdater
from rmqfast.errors import ClientError, RemotingConnectError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Response
from rmqfast.system import monotonic
from tests.client.instance.doubles import FakeConsumer, FakeNameServer, FakeProducer, route_of


def updater(
    server: FakeNameServer, *members: FakeConsumer | FakeProducer, clock: Callable[[], float] = monotonic
) -> tuple[RouteUpdater, RouteTable]:
    table, sharing = server.table(), Members()
    for number, member in enumerate(members):
        if isinstance(member, FakeConsumer):
            sharing.add_consumer(member.group, member)
        else:
            sharing.add_producer(f"p{number}", member)
    return RouteUpdater(table, sharing, timeout=1.0, clock=clock), table


def test_a_route_that_is_new_goes_to_consumers_once() -> None:
    consumer, server = FakeConsumer("cg", "t"), FakeNameServer(t=route_of("a"))
    routes, table = updater(server, consumer)
    assert routes.update("t")
    assert len(consumer.queues["t"]) == 4
    assert table.publish_address("a") == "a:10911"
    assert not routes.update("t")
    server.routes["t"] = route_of("a", "b")
    assert routes.update("t")
    assert len(consumer.queues["t"]) == 8


def test_the_same_route_is_told_to_a_member_that_came_later() -> None:
    server, consumer = FakeNameServer(t=route_of("a")), FakeConsumer("cg", "t")
    routes, _ = updater(server, consumer)
    assert routes.update("t")
    consumer.queues.clear()
    assert routes.update("t")
    assert len(consumer.queues["t"]) == 4


def test_where_the_name_server_knows_no_such_topic_the_old_route_stays(caplog: pytest.LogCaptureFixture) -> None:
    server = FakeNameServer(t=route_of("a"))
    routes, table = updater(server)
    routes.update("t")
    server.routes.clear()
    with caplog.at_level(logging.INFO):
        assert not routes.update("t")
    assert table.publish_address("a") == "a:10911"
    assert "no route of topic t" in caplog.text


@pytest.mark.parametrize("topic", ["%RETRY%g", "TBW102"])
def test_topics_that_need_not_be_there_are_not_complained_about(topic: str, caplog: pytest.LogCaptureFixture) -> None:
    routes, _ = updater(FakeNameServer())
    with caplog.at_level(logging.INFO):
        assert not routes.update(topic)
    assert caplog.text == ""


def test_a_topic_that_is_not_there_yet_has_the_route_of_the_one_it_is_made_after() -> None:
    server = FakeNameServer(TBW102=route_of("a", queues=8))
    routes, table = updater(server, FakeProducer("t"))
    assert not routes.update("t")
    assert routes.update("t", ("TBW102", 4))
    assert table.get("t") == route_of("a", queues=4)
    server.routes["TBW102"] = route_of("b")
    assert not routes.update("t", ("TBW102", 4))
    server.routes["t"] = route_of("a", queues=2)
    assert routes.update("t", ("TBW102", 4))
    assert table.get("t") == route_of("a", queues=2)


def test_where_no_name_server_answers_it_is_one_error_with_the_next_step() -> None:
    server = FakeNameServer(t=route_of("a"))
    routes, table = updater(server)
    routes.update("t")
    server.error = RemotingConnectError("connect to <a:1> failed")
    with pytest.raises(ClientError, match="connect to <a:1> failed\nsee that a name server runs there") as caught:
        routes.update("t")
    assert caught.value.response_code == 10001
    assert table.publish_address("a") == "a:10911"


def test_while_no_name_server_answers_the_timer_asks_once_and_complains_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    server, consumer = FakeNameServer(), FakeConsumer("cg", "t", "u")
    routes, _ = updater(server, consumer)
    server.error = RemotingConnectError("connect to <a:1> failed")
    for _ in range(3):
        routes.update_all()
    assert server.asked == ["t"] * 3
    assert caplog.text.count("routes are not updated") == 1
    server.error, server.routes = None, {"t": route_of("a"), "u": route_of("a")}
    routes.update_all()
    assert set(consumer.queues) == {"t", "u"}
    assert "routes are updated again" in caplog.text


def test_an_end_that_cuts_a_round_off_is_nothing_to_warn_of(caplog: pytest.LogCaptureFixture) -> None:
    server = FakeNameServer()
    routes, _ = updater(server, FakeConsumer("cg", "t"))
    server.error = RemotingConnectError("the channel <a:1> is closed")
    routes.close()
    routes.update_all()
    assert server.asked == ["t"]
    assert caplog.text == ""


def test_a_member_that_fails_does_not_keep_the_others_from_the_route(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(FakeConsumer):
        def update_topic_subscribe_info(self, topic: str, queues: object) -> None:
            raise ValueError("of no use")

    consumer = FakeConsumer("cg", "t")
    routes, _ = updater(FakeNameServer(t=route_of("a")), Broken("broken", "t"), consumer)
    assert routes.update("t")
    assert consumer.queues["t"]
    assert "of no use" in caplog.text


def test_who_needs_a_route_that_is_not_there_is_told_why() -> None:
    server = FakeNameServer()
    routes, table = updater(server)
    routes.update("t")
    error = table.no_route_error("t")
    assert error.response_code == 10005
    assert str(error).startswith("No route info of this topic: t\ncreate the topic")
    for answer, reason in [
        (Response(1, "signature failed"), "signature failed"),
        (Response(body=b"{"), "body: no json"),
        (Response(body=b'{"queueDatas":[{}]}'), "body: queueDatas: expected a brokerName"),
    ]:
        server.refusal = answer
        assert not routes.update("t")
        assert f"the name server says: {reason}" in str(table.no_route_error("t"))
    server.routes["t"] = route_of("a")
    assert routes.update("t")
    assert "the name server says" not in str(table.no_route_error("t"))


def test_only_topics_without_queues_are_asked_for_and_less_often_after_a_minute() -> None:
    server, now = FakeNameServer(), [0.0]
    consumer = FakeConsumer("g", "there", "missing", "%RETRY%g")
    consumer.queues["there"] = [MessageQueue("there", "b", 0)]
    routes, _ = updater(server, consumer, clock=lambda: now[0])
    assert [routes.update_missing() for _ in range(3)] == [False] * 3
    assert server.asked == ["missing"] * 3
    now[0] = SOON
    server.asked.clear()
    assert not any(routes.update_missing() for _ in range(2 * LATER))
    assert server.asked == ["missing"] * 2
    server.routes["missing"] = route_of("b")
    assert [routes.update_missing() for _ in range(LATER)].count(True) == 1
    assert consumer.queues["missing"]
    server.asked.clear()
    assert not any(routes.update_missing() for _ in range(2 * LATER))
    assert server.asked == []


def test_a_name_server_that_does_not_answer_is_asked_for_one_missing_topic() -> None:
    server = FakeNameServer()
    server.error = RemotingConnectError("connect to <a:1> failed")
    routes, _ = updater(server, FakeConsumer("g", "one", "two"))
    assert not routes.update_missing()
    assert server.asked == ["one"]
