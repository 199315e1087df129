"""Members of a group that subscribe differently: what is a conflict, and when a member hears of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqfast.client.consumer import build_subscription_data
from rmqfast.client.consumer.subscription import (
    NOTHING,
    SOMEBODY,
    MessageSelector,
    SubscriptionConflict,
    conflicts_of,
    subscription_conflicts,
)
from rmqfast.client.consumer.subscription_watcher import ATTEMPTS, SubscriptionWatcher
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.errors import RemotingTimeoutError, ResponseError
from rmqfast.remoting import RequestCode, Response, ResponseCode, fastjson
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from tests.broker.interop.cluster import SCENARIO, cluster_of
from tests.client.instance.doubles import FakeConsumer, FakeNameServer
from tests.embedded.client import send
from tests.interop.rocketmq import running
from tests.waiting import until

GROUP = "g"
RETRY = "%RETRY%g"


def wants(expression: str | MessageSelector, version: int = 1, topic: str = "t") -> SubscriptionData:
    return build_subscription_data(topic, expression, now=version)


def by_topic(*subscriptions: SubscriptionData) -> dict[str, SubscriptionData]:
    return {subscription.topic: subscription for subscription in subscriptions}


def expressions(conflicts: list[SubscriptionConflict]) -> dict[str, dict[str, str]]:
    return {conflict.topic: dict(conflict.expressions) for conflict in conflicts}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A || B", "B||A"),
        ("*", "*"),
        ("A", " A "),
        (MessageSelector.by_sql("a > 1"), MessageSelector.by_sql(" a > 1 ")),
    ],
)
def test_what_means_the_same_is_no_conflict(one: str, other: str) -> None:
    assert conflicts_of(GROUP, {"c1": by_topic(wants(one)), "c2": by_topic(wants(other, 9))}) == []


@pytest.mark.parametrize(
    ("one", "other"), [("A", "B"), ("*", "A"), ("A", "A || B"), ("A", MessageSelector.by_sql("A")), ("A", "a")]
)
def test_what_means_something_else_is_one(one: str, other: str) -> None:
    assert len(conflicts_of(GROUP, {"c1": by_topic(wants(one)), "c2": by_topic(wants(other))})) == 1


def test_a_topic_that_only_one_of_them_wants_is_one_but_not_the_topic_of_retries() -> None:
    members = {"c1": by_topic(wants("*"), wants("*", topic=RETRY)), "c2": by_topic(wants("*", topic="u"))}
    found = expressions(conflicts_of(GROUP, members))
    assert found == {"t": {"c1": "*", "c2": NOTHING}, "u": {"c1": NOTHING, "c2": "*"}}


def seen(
    mine: SubscriptionData, table: SubscriptionData | None, others: dict[str, dict[str, SubscriptionData] | None]
) -> dict[str, dict[str, str]]:
    known = {} if table is None else by_topic(table, wants("*", topic=RETRY))
    return expressions(subscription_conflicts(GROUP, "c1", [mine], known, others))


def test_a_member_that_was_overruled_and_one_that_overrules_both_see_it() -> None:
    told: dict[str, dict[str, SubscriptionData] | None] = {"c2": by_topic(wants("B", 2))}
    assert seen(wants("A", 1), wants("B", 2), told) == {"t": {"c1": "A", "c2": "B"}}
    assert seen(wants("A", 3), wants("A", 3), told) == {"t": {"c1": "A", "c2": "B"}}


def test_what_the_broker_has_speaks_for_members_that_are_silent() -> None:
    assert seen(wants("A", 1), wants("B", 2), {"c2": None}) == {"t": {"c1": "A", SOMEBODY: "B"}}
    assert seen(wants("A", 1), wants("A", 1), {"c2": None}) == {}


def test_what_is_left_of_a_member_that_has_gone_is_no_conflict_where_all_others_say_what_they_want() -> None:
    assert seen(wants("A", 1), wants("B", 2), {"c2": by_topic(wants("A", 1))}) == {}
    assert seen(wants("A", 1), wants("B", 2), {}) == {}


def test_a_heartbeat_that_is_under_way_is_no_conflict() -> None:
    assert seen(wants("B", 2), wants("A", 1), {"c2": None}) == {}
    assert seen(wants("B", 2), None, {"c2": None}) == {}
    assert seen(wants("B", 2), wants("A", 1), {"c2": by_topic(wants("B", 2))}) == {}
    assert seen(wants("B", 2), wants("A", 1), {}) == {}


TAGS = st.lists(st.sampled_from("ABC"), min_size=1, max_size=3).map("||".join)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["c1", "c2", "c3", "c4"]), TAGS, min_size=1))
def test_a_conflict_names_every_member_and_is_there_if_and_only_if_tags_differ(members: dict[str, str]) -> None:
    found = conflicts_of(GROUP, {name: by_topic(wants(tags)) for name, tags in members.items()})
    assert bool(found) == (len({frozenset(tags.split("||")) for tags in members.values()}) > 1)
    assert all(set(conflict.expressions) == set(members) for conflict in found)


class Group:
    """A broker with one group; counts what it is asked."""

    client_id = "c1"

    def __init__(self) -> None:
        self.members: dict[str, SubscriptionData | None] = {"c1": wants("A"), "c2": wants("A")}
        self.table = wants("A")
        self.asked = {RequestCode.GET_CONSUMER_CONNECTION_LIST: 0, RequestCode.GET_CONSUMER_RUNNING_INFO: 0}
        self.is_online = True
        route = TopicRouteData(broker_datas=(BrokerData("c", "b", {0: "h:1"}),), queue_datas=())
        self.routes = FakeNameServer(t=route).table()
        self.routes.update("t")
        self.api = self
        self.as_instance: Any = self

    def ask(self, address: str, code: int, ext_fields: dict[str, object], *, timeout: float | None = None) -> Response:
        assert address == "h:1"
        assert timeout is not None
        self.asked[RequestCode(code)] += 1
        if not self.is_online:
            raise ResponseError(ResponseCode.CONSUMER_NOT_ONLINE, "not online")
        if code == RequestCode.GET_CONSUMER_CONNECTION_LIST:
            connections = [{"clientId": name} for name in self.members]
            return Response(
                body=fastjson.encode({"connectionSet": connections, "subscriptionTable": {"t": self.table.to_json()}})
            )
        wanted = self.members[str(ext_fields["clientId"])]
        if wanted is None:
            raise RemotingTimeoutError("no answer")
        return Response(body=fastjson.encode({"subscriptionSet": [wanted.to_json()]}))

    @property
    def counts(self) -> tuple[int, int]:
        return tuple(self.asked.values())  # type: ignore[return-value]

    def watcher(self, heard: list[SubscriptionConflict] | None = None) -> SubscriptionWatcher:
        told = None if heard is None else heard.append
        return SubscriptionWatcher(
            self.as_instance, GROUP, lambda: [wanted for wanted in [self.members["c1"]] if wanted], told
        )


def test_members_are_asked_once_while_nothing_changes() -> None:
    group = Group()
    watcher = group.watcher()
    assert [watcher.look() for _ in range(5)] == [()] * 5
    assert group.counts == (5, 1)
    group.members["c3"] = wants("A")
    watcher.look()
    assert group.counts == (6, 3)


def test_a_conflict_is_said_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    group, heard = Group(), list[SubscriptionConflict]()
    watcher = group.watcher(heard)
    watcher.look()
    group.members["c2"], group.table = wants("B", 2), wants("B", 2)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            assert len(watcher.look()) == 1
        assert expressions(heard) == {"t": {"c1": "A", "c2": "B"}}
        assert watcher.warnings == 1
        assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
        assert "c1 wants A, c2 wants B; messages get lost" in caplog.text
        group.members["c2"], group.table = wants("A", 3), wants("A", 3)
        assert watcher.look() == ()
    assert "alike" in caplog.text
    assert watcher.warnings == 1


def test_a_silent_member_is_asked_a_few_times_and_the_broker_speaks_for_it() -> None:
    group, heard = Group(), list[SubscriptionConflict]()
    group.members["c2"], group.table = None, wants("B", 2)
    watcher = group.watcher(heard)
    for _ in range(ATTEMPTS + 4):
        watcher.look()
    assert group.counts == (ATTEMPTS + 4, ATTEMPTS)
    assert expressions(heard) == {"t": {"c1": "A", SOMEBODY: "B"}}
    group.members["c2"], group.table = wants("B", 3), wants("B", 3)
    watcher.look()
    assert expressions(heard[1:]) == {"t": {"c1": "A", "c2": "B"}}


def test_a_large_group_is_asked_in_turns_before_anything_is_said() -> None:
    group, heard = Group(), list[SubscriptionConflict]()
    group.members |= {f"d{number:02}": wants("A") for number in range(60)}
    group.members["d59"] = wants("B")
    watcher = group.watcher(heard)
    assert watcher.look() == ()
    assert len(watcher.look()) == 1
    assert group.counts == (2, 61)


def test_a_group_that_is_not_there_yet_and_a_broker_that_fails_say_nothing() -> None:
    group = Group()
    group.is_online = False
    assert group.watcher().look() == ()
    group.is_online = True
    watcher = group.watcher()
    group.members["c2"] = wants("B", 2)
    assert len(watcher.look()) == 1
    group.table = SubscriptionData(topic="", sub_version=1)  # what no broker sends
    assert len(watcher.look()) == 1


@pytest.mark.parametrize("size", [2, 200])
def test_a_broker_that_keeps_now_this_now_that_is_no_change(size: int, caplog: pytest.LogCaptureFixture) -> None:
    group = Group()
    group.members |= {f"d{number:03}": wants("A") for number in range(size)}
    group.members["d001"] = wants("B")
    watcher = group.watcher()
    for version in range(2, 22):
        group.table = wants("AB"[version % 2], version)
        watcher.look()
    assert len(watcher.conflicts) == watcher.warnings == 1
    assert watcher.conflicts[0].expressions["d001"] == "B"
    assert caplog.text.count("messages get lost") == 1


def test_a_silent_member_is_given_away_once_and_not_anew_whenever_the_broker_keeps_what_it_wants() -> None:
    group, heard = Group(), list[SubscriptionConflict]()
    group.members["c2"] = None
    watcher = group.watcher(heard)
    for version in range(2, 12):
        group.table = wants("AB"[version % 2], version)
        watcher.look()
    assert expressions(list(watcher.conflicts)) == expressions(heard) == {"t": {"c1": "A", SOMEBODY: "B"}}
    assert watcher.warnings == len(heard) == 1
    del group.members["c2"]
    assert watcher.look() == ()


def test_a_listener_that_fails_keeps_nobody_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    group = Group()
    group.members["c2"] = wants("B", 2)

    def failing(_: SubscriptionConflict) -> None:
        raise ZeroDivisionError

    watcher = SubscriptionWatcher(group.as_instance, GROUP, lambda: [wants("A"), wants("A", topic="u")], failing)
    assert len(watcher.look()) == 2
    assert watcher.warnings == 2
    assert caplog.text.count("who is told of conflicts fails") == 2


def test_before_its_own_heartbeat_has_come_a_member_says_nothing() -> None:
    group = Group()
    group.members = {"c2": wants("B", 2)}
    group.table = wants("B", 2)
    watcher = SubscriptionWatcher(group.as_instance, GROUP, lambda: [wants("A")])
    assert watcher.look() == ()
    assert group.counts == (1, 0)
    group.members["c1"] = wants("A")
    assert len(watcher.look()) == 1


def test_a_look_that_is_under_way_when_it_is_stopped_tells_nobody(caplog: pytest.LogCaptureFixture) -> None:
    group, heard = Group(), list[SubscriptionConflict]()
    group.members["c2"] = group.table = wants("B", 2)
    watcher: SubscriptionWatcher

    def mine() -> list[SubscriptionData]:
        watcher.stop()  # meanwhile, as a consumer that shuts down
        return [wants("A")]

    watcher = SubscriptionWatcher(group.as_instance, GROUP, mine, heard.append)
    assert len(watcher.look()) == 1
    assert (heard, watcher.warnings, caplog.text) == ([], 0, "")


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["ours", "4.9.4", "5.3.3", "5.5.0"])
def test_a_java_client_with_other_tags_is_found(name: str, tmp_path: Path) -> None:
    with cluster_of(name, tmp_path / "cluster", SCENARIO) as cluster:
        until(lambda: send(cluster.broker, "t", b"x").code == 0)
        config = ClientConfig(
            name_server=cluster.name_server, instance_name=f"finds-{name}", poll_name_server_interval=1.0
        )
        instance, consumer = ClientInstance.of(config, config.client_id()), FakeConsumer(GROUP, "t")
        consumer.wanted = [build_subscription_data("t", "A"), build_subscription_data(RETRY)]
        instance.register_consumer(GROUP, consumer)
        try:
            instance.start()
            until(lambda: consumer.queues.get("t"))
            until(instance.send_heartbeats)
            watcher = SubscriptionWatcher(instance, GROUP, consumer.subscriptions)
            assert watcher.look() == ()
            words = ("--mode", "push", "--namesrv", cluster.name_server, "--topic", "t", "--group", GROUP)
            patience = ("--idle-ms", "90000", "--timeout-ms", "90000")
            with running("4.9.4", "Consume", *words, "--expr", "B || C", *patience, log=tmp_path / "java.log"):
                until(watcher.look)
            found = dict(watcher.conflicts[0].expressions)
        finally:
            instance.unregister_consumer(GROUP)
            instance.release()
    assert found.pop(instance.client_id) == "A"
    assert list(found.values()) == ["B || C"]
