"""Subscriptions by expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.metadata import Metadata
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.store.config import ConsumerFilterData, ConsumerFilterTable

from .client_doubles import Line, Tables, client, consumer, subscription

DAY = 24 * 3600 * 1000
A1 = subscription("t", "a > 1", 5, "SQL92")


class Group:
    """A group with one client; the broker saves its expressions at once."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.filters = ConsumerFilterManager(metadata)
        self.consumers = ConsumerManager(Tables().data_plane, self.filters)
        self.line = Line()

    def register(self, *subscriptions: SubscriptionData, now: int) -> None:
        self.consumers.register(client(self.line, now=now), consumer("g", *subscriptions))
        self.filters.persist(now=now)

    def leave(self, now: int) -> None:
        self.consumers.unregister("g", self.line, now=now)
        self.filters.persist(now=now)

    def saved(self, topic: str = "t") -> ConsumerFilterData:
        return self.metadata.load(ConsumerFilterTable)[topic, "g"]

    def saved_topics(self) -> set[str]:
        return {topic for topic, _ in self.metadata.load(ConsumerFilterTable)}


@pytest.fixture
def group(metadata: Metadata) -> Group:
    return Group(metadata)


def test_an_expression_is_registered_with_its_version(group: Group) -> None:
    group.register(A1, now=100)
    saved = group.saved()
    assert (saved.expression, saved.client_version, saved.born_time, saved.dead) == ("a > 1", 5, 100, False)


def test_tags_are_none_of_its_business(group: Group) -> None:
    group.register(subscription("t", "A"), now=100)
    assert group.saved_topics() == set()


@pytest.mark.parametrize(
    ("expression", "version", "kept"),
    [
        ("a > 2", 6, ("a > 2", 6, 200)),
        ("a > 1", 6, ("a > 1", 6, 100)),
        ("a > 2", 5, ("a > 1", 5, 100)),
        ("a > 2", 4, ("a > 1", 5, 100)),
        ("a >", 4, ("a > 1", 5, 100)),
    ],
    ids=["newer", "newer version of the same", "equal version", "older", "older that does not compile"],
)
def test_the_newest_expression_counts(group: Group, expression: str, version: int, kept: tuple[str, int, int]) -> None:
    group.register(A1, now=100)
    group.register(subscription("t", expression, version, "SQL92"), now=200)
    saved = group.saved()
    assert (saved.expression, saved.client_version, saved.born_time) == kept


def test_an_expression_that_does_not_compile_leaves_nothing(group: Group) -> None:
    group.register(A1, now=100)
    broken = subscription("t", "a >", 6, "SQL92")
    group.register(broken, subscription("u", "a", 5, "KLINGON"), now=200)
    assert group.saved_topics() == set()
    group.register(broken, now=300)
    assert group.saved_topics() == set()


def test_a_topic_that_is_not_wanted_any_more_is_dead(group: Group) -> None:
    group.register(A1, replace(A1, topic="u"), now=100)
    group.register(A1, now=200)
    gone = group.saved("u")
    assert (gone.dead, gone.dead_time, group.saved().dead) == (True, 200, False)


def test_who_comes_back_with_the_same_version_is_alive_again(group: Group) -> None:
    group.register(A1, now=100)
    group.leave(now=200)
    group.leave(now=300)
    assert group.saved().dead_time == 200
    group.register(A1, now=400)
    assert (group.saved().dead, group.saved().born_time) == (False, 100)


def test_a_switch_to_tags_leaves_the_expression_alive_as_its_topic_is_still_wanted(group: Group) -> None:
    group.register(A1, now=100)
    group.register(subscription("t", "A", 6), now=200)
    assert not group.saved().dead


def test_an_expression_older_than_the_groups_subscription_replaces_nothing(group: Group) -> None:
    group.register(A1, now=100)
    group.register(subscription("t", "A", 7), now=200)
    group.register(subscription("t", "a > 2", 6, "SQL92"), now=300)
    assert group.saved().expression == "a > 1"


def test_the_dead_are_forgotten_after_24_hours(group: Group) -> None:
    group.register(A1, now=100)
    group.leave(now=200)
    group.filters.persist(now=200 + DAY - 1)
    assert group.saved_topics() == {"t"}
    group.filters.persist(now=200 + DAY)
    assert group.saved_topics() == set()


def test_a_restart_finds_what_was_saved_without_consumers(golden_store_copy: Callable[[str], Path]) -> None:
    metadata = Metadata(golden_store_copy("offsets-4.9.4"))
    restarted = ConsumerFilterManager(metadata)
    restarted.load(now=1795231700000)
    restarted.persist(now=1795231700000)
    saved = metadata.load(ConsumerFilterTable)["fx_plain", "fx_sql"]
    assert (saved.expression, saved.dead) == ("a > 0 AND color IS NOT NULL", True)
    metadata.close()


def test_a_file_is_written_only_when_something_changed(group: Group) -> None:
    path = group.metadata.root / "config" / "consumerFilter.json"

    def is_written() -> bool:
        path.unlink(missing_ok=True)
        group.metadata.write_files()
        return path.exists()

    group.register(A1, now=100)
    assert is_written()
    group.register(A1, now=300)
    assert not is_written()
    group.leave(now=400)
    assert is_written()
