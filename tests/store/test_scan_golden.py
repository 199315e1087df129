"""A scan of each golden store gives what RocketMQ's own classes read from it, whatever way it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rmqfast.store import ScanRequest
from rmqfast.store.reader import Way
from tests import golden_stores
from tests.golden_stores import NAMES, Line
from tests.store.scanned import opened, rows_and_damage, rows_of, scanned

DAMAGED = "damaged-4.9.4"
WHOLE = [name for name in NAMES if name != DAMAGED]
PREPARED, ROLLBACK, TRANSACTION = 0x4, 0xC, 0xC
GoldenStore = Callable[[str], Path]


def listed(rows: list[Line], topic: str) -> list[Line]:
    """Those of a topic that have a place in a queue."""
    return [r for r in rows if r["topic"] == topic and r["sys_flag"] & TRANSACTION not in (PREPARED, ROLLBACK)]


def topics(rows: list[Line]) -> list[str]:
    return [topic for topic in sorted({row["topic"] for row in rows}) if listed(rows, topic)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"verify_crc": True, "batch_rows": 7}], ids=["plain", "verified"])
def test_all_rows_are_the_messages_that_rocketmq_reads(
    name: str, options: dict[str, Any], golden_store: GoldenStore
) -> None:
    rows, damage = rows_and_damage(golden_store(name), **options)
    assert list(golden_stores.differences(rows, golden_stores.expected_rows(name))) == []
    assert bool(damage) == (name == DAMAGED)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["log", "queue", None])
def test_each_topic_has_its_messages_by_each_way(name: str, way: str | None, golden_store: GoldenStore) -> None:
    rows = golden_stores.expected_rows(name)
    for topic in topics(rows):
        found, _ = rows_and_damage(golden_store(name), topic, way=way)
        assert list(golden_stores.differences(found, listed(rows, topic))) == [], topic


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("way", ["log", "queue"])
def test_a_whole_store_has_no_damage(name: str, way: str, golden_store: GoldenStore) -> None:
    for topic in topics(golden_stores.expected_rows(name)):
        scan = scanned(golden_store(name), topic, way=way, columns=["queue_offset"])
        assert scan.to_arrow().num_rows > 0
        assert scan.damage == []


@pytest.mark.parametrize("name", NAMES)
def test_maps_give_the_same_rows(name: str, golden_store: GoldenStore) -> None:
    wanted = golden_stores.expected_rows(name)
    store = opened(golden_store(name), io="mmap")
    assert list(golden_stores.differences(rows_of(store.scan()), wanted)) == []
    for topic in topics(wanted):
        by_queue = rows_of(store.scan(topic, way="queue"))
        assert list(golden_stores.differences(by_queue, listed(wanted, topic))) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["log", "queue"])
def test_pieces_of_a_scan_are_the_scan(name: str, way: Way, golden_store: GoldenStore) -> None:
    store = opened(golden_store(name))
    wanted = golden_stores.expected_rows(name)
    for topic in topics(wanted):
        request = ScanRequest(topic=topic)
        pieces, _, _ = store.plan(request, cut_bytes=10_000, way=way)
        found = [row for piece in pieces for row in rows_of(store.scan_pieces(request, [piece]))]
        assert list(golden_stores.differences(found, listed(wanted, topic))) == [], topic
