"""A scan of each golden store gives what RocketMQ's own classes read from it, whatever way it takes."""

from __future__ import annotations

import pytest

from tests import golden_stores
from tests.golden_stores import NAMES, Line, PathOf
from tests.store.scanned import opened, plain_rows, scanned, table_of

DAMAGED = "damaged-4.9.4"
PREPARED, ROLLBACK, TRANSACTION = 0x4, 0xC, 0xC


def listed(rows: list[Line], topic: str) -> list[Line]:
    """Those of a topic that have a place in a queue."""
    return [r for r in rows if r["topic"] == topic and r["sys_flag"] & TRANSACTION not in (PREPARED, ROLLBACK)]


def topics(rows: list[Line]) -> list[str]:
    return [topic for topic in sorted({row["topic"] for row in rows}) if listed(rows, topic)]


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_are_the_messages_that_rocketmq_reads(name: str, golden_store: PathOf) -> None:
    scan = scanned(golden_store(name))
    table = table_of(scan)
    assert list(golden_stores.differences(plain_rows(table), golden_stores.expected_rows(name))) == []
    assert bool(scan.damage) == (name == DAMAGED)
    verified = scanned(golden_store(name), verify_crc=True, batch_rows=7)
    assert table_of(verified) == table
    assert verified.damage == scan.damage
    assert table_of(opened(golden_store(name), io="mmap").scan()) == table


@pytest.mark.parametrize("name", NAMES)
def test_each_topic_has_its_messages_by_each_way(name: str, golden_store: PathOf) -> None:
    rows = golden_stores.expected_rows(name)
    store, mapped = opened(golden_store(name)), opened(golden_store(name), io="mmap")
    for topic in topics(rows):
        by_log = table_of(store.scan(topic, way="log"))
        assert list(golden_stores.differences(plain_rows(by_log), listed(rows, topic))) == [], topic
        for scan in (store.scan(topic, way="queue"), store.scan(topic), mapped.scan(topic, way="queue")):
            assert table_of(scan) == by_log, topic
            # to find the damage takes all of the log
            assert scan.damage == [] or name == DAMAGED
