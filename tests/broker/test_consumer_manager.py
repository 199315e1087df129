"""The registry of consumers: whom it notifies, what it tells the data plane."""

from __future__ import annotations

import pytest

from rmqfast.broker.clients.client_channel import GroupChange
from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.metadata import Metadata
from rmqfast.store.config import ConsumerFilterTable

from .client_doubles import Line, Tables, client, consumer, subscription

WANTS_T = subscription("t", "A", 5)


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
def filters(metadata: Metadata) -> ConsumerFilterManager:
    return ConsumerFilterManager(metadata)


@pytest.fixture
def consumers(tables: Tables, filters: ConsumerFilterManager) -> ConsumerManager:
    return ConsumerManager(tables.data_plane, filters)


def test_all_are_told_of_a_newcomer_and_the_newcomer_too(consumers: ConsumerManager) -> None:
    first, second = Line("1:1"), Line("2:2")
    assert consumers.register(client(first, "one"), consumer("g", WANTS_T)) == GroupChange("g", (first,))
    assert consumers.register(client(second, "two"), consumer("g", WANTS_T)) == GroupChange("g", (first, second))
    assert consumers.register(client(second, "two"), consumer("g", WANTS_T)) is None


def test_newer_tags_are_kept_in_silence(consumers: ConsumerManager, tables: Tables) -> None:
    line = Line()
    consumers.register(client(line), consumer("g", WANTS_T))
    assert consumers.register(client(line), consumer("g", subscription("t", "B", 6))) is None
    assert tables.subscriptions == {("g", "t"): subscription("t", "B", 6)}


def test_a_topic_more_and_a_topic_less_are_told(consumers: ConsumerManager, tables: Tables) -> None:
    line = Line()
    consumers.register(client(line), consumer("g", WANTS_T))
    assert consumers.register(client(line), consumer("g", WANTS_T, subscription("u"))) == GroupChange("g", (line,))
    assert set(tables.subscriptions) == {("g", "t"), ("g", "u")}
    assert consumers.register(client(line), consumer("g", WANTS_T)) == GroupChange("g", (line,))
    assert set(tables.subscriptions) == {("g", "t")}


def test_two_clients_with_other_topics_erase_each_others(consumers: ConsumerManager, tables: Tables) -> None:
    first, second = client(Line(), "one"), client(Line(), "two")
    consumers.register(first, consumer("g", WANTS_T))
    consumers.register(second, consumer("g", subscription("u")))
    assert set(tables.subscriptions) == {("g", "u")}
    consumers.register(first, consumer("g", WANTS_T))
    assert set(tables.subscriptions) == {("g", "t")}


def test_the_broker_may_forbid_all_notices(tables: Tables, filters: ConsumerFilterManager) -> None:
    consumers = ConsumerManager(tables.data_plane, filters, is_notifying=lambda: False)
    line = Line()
    assert consumers.register(client(line), consumer("g", WANTS_T)) is None
    consumers.register(client(Line(), "other"), consumer("g", WANTS_T))
    assert consumers.disconnect(line, now=1) == []


def test_the_model_of_the_last_heartbeat_counts(consumers: ConsumerManager, tables: Tables) -> None:
    line = Line()
    consumers.register(client(line), consumer("g", WANTS_T))
    assert tables.online == {"g": "CLUSTERING"}
    consumers.register(client(line), consumer("g", WANTS_T, model="BROADCASTING"))
    assert tables.online == {"g": "BROADCASTING"}


def test_who_disconnects_leaves_all_groups_and_the_others_are_told(consumers: ConsumerManager, tables: Tables) -> None:
    gone, stays = Line("1:1"), Line("2:2")
    consumers.register(client(gone, "gone"), consumer("g", WANTS_T))
    consumers.register(client(gone, "gone"), consumer("alone", WANTS_T))
    consumers.register(client(stays, "stays"), consumer("g", WANTS_T))
    assert consumers.disconnect(gone, now=1) == [GroupChange("g", (stays,))]
    assert tables.online == {"g": "CLUSTERING"}
    assert set(tables.subscriptions) == {("g", "t")}
    assert consumers.client_ids("g") == ["stays"]
    assert consumers.disconnect(gone, now=2) == []


def test_subscriptions_survive_the_client_that_brought_them(consumers: ConsumerManager, tables: Tables) -> None:
    gone, stays = Line("1:1"), Line("2:2")
    consumers.register(client(stays, "stays"), consumer("g", WANTS_T))
    consumers.register(client(gone, "gone"), consumer("g", subscription("t", "B", 9)))
    consumers.disconnect(gone, now=1)
    assert tables.subscriptions["g", "t"] == subscription("t", "B", 9)


def test_who_says_good_bye_leaves_one_group(consumers: ConsumerManager, tables: Tables) -> None:
    gone, stays = Line("1:1"), Line("2:2")
    for group in ("g", "h"):
        consumers.register(client(gone, "gone"), consumer(group, WANTS_T))
        consumers.register(client(stays, "stays"), consumer(group, WANTS_T))
    assert consumers.unregister("g", gone, now=1) == GroupChange("g", (stays,))
    assert consumers.client_ids("h") == ["gone", "stays"]
    assert consumers.unregister("h", gone, now=1, is_notify_enabled=False) is None
    assert consumers.unregister("g", stays, now=2) is None
    assert tables.online == {"h": "CLUSTERING"}


def test_who_is_silent_for_more_than_120_seconds_is_removed_without_notice(
    consumers: ConsumerManager, tables: Tables, filters: ConsumerFilterManager, metadata: Metadata
) -> None:
    silent, alive = Line("1:1"), Line("2:2")
    by_sql = subscription("t", "a > 1", 5, "SQL92")
    consumers.register(client(silent, "silent", now=10), consumer("g", by_sql))
    consumers.register(client(silent, "silent", now=10), consumer("alone", by_sql))
    consumers.register(client(alive, "alive", now=11), consumer("g", by_sql))
    assert consumers.scan(120_010) == []
    assert consumers.scan(120_011) == [silent]
    assert consumers.client_ids("g") == ["alive"]
    assert set(tables.online) == {"g"}
    assert consumers.disconnect(silent, now=120_012) == []
    filters.persist(now=120_012)
    left = metadata.load(ConsumerFilterTable)["t", "alone"]
    assert not left.dead, "the scan sends no UNREGISTER event"


def test_what_others_ask_of_the_registry(consumers: ConsumerManager) -> None:
    line = Line()
    consumers.register(client(line, "one"), consumer("g", WANTS_T, subscription("u")))
    consumers.register(client(line, "one"), consumer("h", WANTS_T))
    assert consumers.groups_of_topic("t") == {"g", "h"}
    assert consumers.subscription("g", "t") == WANTS_T
    assert consumers.subscription("g", "x") is None
    assert consumers.subscription("x", "t") is None
    assert (consumers.subscription_count("g"), consumers.subscription_count("x")) == (2, 0)
    found = consumers.client("g", "one")
    assert found is not None
    assert found.channel is line
    assert consumers.client("g", "two") is None
    assert consumers.names() == ["g", "h"]


def test_a_group_that_was_given_out_does_not_change(consumers: ConsumerManager) -> None:
    line = Line()
    consumers.register(client(line), consumer("g", WANTS_T))
    before = consumers.group("g")
    consumers.disconnect(line, now=1)
    assert before is not None
    assert list(before.clients) == [line]
    assert consumers.group("g") is None
