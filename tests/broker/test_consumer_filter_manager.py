"""Subscriptions by expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rmqfast._native import check_sql92
from rmqfast.broker.clients.bloom_filter import bit_positions, murmur3_128
from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.metadata import Metadata
from rmqfast.store.config import ConsumerFilterTable

from .client_doubles import subscription

DAY = 24 * 3600 * 1000
A1 = subscription("t", "a > 1", 5, "SQL92")


@pytest.fixture
def filters(metadata: Metadata) -> ConsumerFilterManager:
    return ConsumerFilterManager(metadata, check_sql92)


def test_places_in_the_filter_are_those_of_a_real_broker(golden_store: Callable[[str], Path]) -> None:
    table = ConsumerFilterTable.load(golden_store("offsets-4.9.4"))
    saved = table["fx_plain", "fx_sql"].bloom_filter_data
    assert saved is not None
    assert bit_positions("fx_sql#fx_plain") == saved.bit_pos


@pytest.mark.parametrize(
    ("data", "low_half"),
    [
        (b"", 0),
        (b"hello", 0xCBD8A7B341BD9B02),
        (b"hello, world", 0x342FAC623A5EBC8E),
        (b"The quick brown fox jumps over the lazy dog", 0xE34BBC7BBC071B6C),
    ],
)
def test_murmur_3_has_its_published_values(data: bytes, low_half: int) -> None:
    assert murmur3_128(data) == low_half


def test_an_expression_is_registered_with_its_version(filters: ConsumerFilterManager) -> None:
    filters.register("g", [A1], now=100)
    kept = filters.get("t", "g")
    assert kept is not None
    assert (kept.expression, kept.client_version, kept.born_time, kept.dead) == ("a > 1", 5, 100, False)


def test_tags_are_none_of_its_business(filters: ConsumerFilterManager) -> None:
    filters.register("g", [subscription("t", "A")], now=100)
    assert filters.get("t", "g") is None


@pytest.mark.parametrize(
    ("expression", "version", "kept"),
    [
        ("a > 2", 6, ("a > 2", 6, 200)),
        ("a > 1", 6, ("a > 1", 6, 100)),
        ("a > 2", 5, ("a > 1", 5, 100)),
        ("a > 2", 4, ("a > 1", 5, 100)),
        ("a >", 6, None),
        ("a >", 4, ("a > 1", 5, 100)),
    ],
    ids=[
        "newer",
        "newer version of the same",
        "equal version",
        "older",
        "newer that does not compile",
        "older, likewise",
    ],
)
def test_the_newest_expression_counts(
    filters: ConsumerFilterManager, expression: str, version: int, kept: tuple[str, int, int] | None
) -> None:
    filters.register("g", [A1], now=100)
    filters.register("g", [subscription("t", expression, version, "SQL92")], now=200)
    data = filters.get("t", "g")
    assert (data and (data.expression, data.client_version, data.born_time)) == kept


def test_an_expression_that_does_not_compile_leaves_nothing(filters: ConsumerFilterManager) -> None:
    filters.register("g", [subscription("t", "a >", 5, "SQL92"), subscription("u", "a", 5, "KLINGON")], now=100)
    assert filters.get("t", "g") is None
    assert filters.get("u", "g") is None


def test_a_topic_that_is_not_wanted_any_more_is_dead(filters: ConsumerFilterManager) -> None:
    filters.register("g", [A1, replace(A1, topic="u")], now=100)
    filters.register("g", [A1], now=200)
    gone, stays = filters.get("u", "g"), filters.get("t", "g")
    assert gone is not None
    assert stays is not None
    assert (gone.dead, gone.dead_time, stays.dead) == (True, 200, False)


def test_who_comes_back_with_the_same_version_is_alive_again(filters: ConsumerFilterManager) -> None:
    filters.register("g", [A1], now=100)
    filters.unregister("g", now=200)
    filters.unregister("g", now=300)
    dead = filters.get("t", "g")
    assert dead is not None
    assert dead.dead_time == 200
    filters.register("g", [A1], now=400)
    alive = filters.get("t", "g")
    assert alive is not None
    assert (alive.dead, alive.born_time) == (False, 100)


def test_a_switch_to_tags_leaves_the_expression_alive_as_its_topic_is_still_wanted(
    filters: ConsumerFilterManager,
) -> None:
    filters.register("g", [A1], now=100)
    filters.register("g", [subscription("t", "A", 6)], now=200)
    kept = filters.get("t", "g")
    assert kept is not None
    assert not kept.dead


def test_the_dead_are_forgotten_after_24_hours(filters: ConsumerFilterManager, metadata: Metadata) -> None:
    filters.register("g", [A1], now=100)
    filters.unregister("g", now=200)
    filters.persist(now=200 + DAY - 1)
    assert filters.get("t", "g") is not None
    assert ("t", "g") in metadata.load(ConsumerFilterTable)
    filters.persist(now=200 + DAY)
    assert filters.get("t", "g") is None
    assert ("t", "g") not in metadata.load(ConsumerFilterTable)


def test_a_restart_finds_what_was_saved_without_consumers(
    golden_store_copy: Callable[[str], Path],
) -> None:
    metadata = Metadata(golden_store_copy("offsets-4.9.4"))
    restarted = ConsumerFilterManager(metadata, lambda _: None)
    restarted.load(now=1795231700000)
    kept = restarted.get("fx_plain", "fx_sql")
    assert kept is not None
    assert (kept.expression, kept.dead) == ("a > 0 AND color IS NOT NULL", True)
    metadata.close()


def test_a_file_is_written_only_when_something_changed(filters: ConsumerFilterManager, metadata: Metadata) -> None:
    def is_written(now: int) -> bool:
        path = metadata.root / "config" / "consumerFilter.json"
        path.unlink(missing_ok=True)
        filters.persist(now=now)
        metadata.write_files()
        return path.exists()

    filters.register("g", [A1], now=100)
    assert is_written(200)
    assert not is_written(300)
    filters.unregister("g", now=400)
    assert is_written(500)
