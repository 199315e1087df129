"""A scan of each golden store gives what RocketMQ's own classes read from it, whatever way it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from rmqfast.store import ScanRequest
from rmqfast.store.reader import Way
from tests import golden_stores
from tests.golden_stores import NAMES, Line
from tests.store.scanned import opened, plain_rows, scanned, table_of

DAMAGED = "damaged-4.9.4"
PREPARED, ROLLBACK, TRANSACTION = 0x4, 0xC, 0xC
GoldenStore = Callable[[str], Path]


def listed(rows: list[Line], topic: str) -> list[Line]:
    """Those of a topic that have a place in a queue."""
    return [r for r in rows if r["topic"] == topic and r["sys_flag"] & TRANSACTION not in (PREPARED, ROLLBACK)]


def topics(rows: list[Line]) -> list[str]:
    return [topic for topic in sorted({row["topic"] for row in rows}) if listed(rows, topic)]


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_are_the_messages_that_rocketmq_reads(name: str, golden_store: GoldenStore) -> None:
    scan = scanned(golden_store(name))
    table = table_of(scan)
    assert list(golden_stores.differences(plain_rows(table), golden_stores.expected_rows(name))) == []
    assert bool(scan.damage) == (name == DAMAGED)
    verified = scanned(golden_store(name), verify_crc=True, batch_rows=7)
    assert table_of(verified) == table
    assert verified.damage == scan.damage
    assert table_of(opened(golden_store(name), io="mmap").scan()) == table


@pytest.mark.parametrize("name", NAMES)
def test_each_topic_has_its_messages_by_each_way(name: str, golden_store: GoldenStore) -> None:
    rows = golden_stores.expected_rows(name)
    store, mapped = opened(golden_store(name)), opened(golden_store(name), io="mmap")
    for topic in topics(rows):
        by_log = table_of(store.scan(topic, way="log"))
        assert list(golden_stores.differences(plain_rows(by_log), listed(rows, topic))) == [], topic
        for scan in (store.scan(topic, way="queue"), store.scan(topic), mapped.scan(topic, way="queue")):
            assert table_of(scan) == by_log, topic
            # to find the damage takes all of the log
            assert scan.damage == [] or name == DAMAGED


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["log", "queue"])
def test_pieces_of_a_scan_are_the_scan(name: str, way: Way, golden_store: GoldenStore) -> None:
    store = opened(golden_store(name))
    for topic in topics(golden_stores.expected_rows(name)):
        request = ScanRequest(topic=topic)
        pieces, _, _ = store.plan(request, cut_bytes=10_000, way=way)
        found = pa.concat_tables([table_of(store.scan_pieces(request, [piece])) for piece in pieces])
        assert found == table_of(store.scan(topic, way=way)), topic
