"""A real 4.9.4 broker on configuration files that were written here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import rmqfast
from rmqfast import Admin, AppendOptions, Message
from rmqfast.errors import UnsupportedStoreError
from rmqfast.store import (
    BloomFilterData,
    ConsumerFilterData,
    ConsumerFilterTable,
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    TopicConfig,
    TopicConfigTable,
    built_in_groups,
    built_in_topics,
)
from tests.interop.rocketmq import RocketMQ, java

from .test_handover import GEOMETRY

SIZES = AppendOptions(file_size=1 << 20, queue_file_size=20_000, index_slots=1000, index_entries=4000)
NOW = 1_795_000_000_000
OFFSETS = {("T", "g"): {0: 1, 1: 2}, ("%RETRY%g", "g"): {0: 0}, ("T", "h"): {2: 3}}


def write_store(path: Path) -> None:
    with rmqfast.open_store(path, mode="a", options=SIZES) as store:
        store.append_many([Message("T", b"%d" % n, queue_id=n % 3) for n in range(12)])
        store.append_many([Message("T", b"in two hours", properties={"DELAY": "18"})] * 4)


def write_config(path: Path) -> None:
    topics, groups = TopicConfigTable(built_in_topics("DefaultCluster", "broker-a")), SubscriptionGroupTable()
    topics.put(TopicConfig(topic_name="T", read_queue_nums=3, write_queue_nums=2, order=True), now=NOW)
    topics.put(TopicConfig(topic_name="read-only", read_queue_nums=1, write_queue_nums=1, perm=4), now=NOW)
    for group in ("g", "h"):
        topics.put(TopicConfig(topic_name=f"%RETRY%{group}", read_queue_nums=1, write_queue_nums=1), now=NOW)
        groups.put(SubscriptionGroupConfig(group_name=group, retry_max_times=5), now=NOW)
    offsets, delays, filters = ConsumerOffsetTable(), DelayOffsetTable(), ConsumerFilterTable()
    for (topic, group), queues in OFFSETS.items():
        for queue, offset in queues.items():
            offsets.commit(topic, group, queue, offset)
    delays.commit(18, 4)
    bits = BloomFilterData(bit_num=112, bit_pos=[68, 99, 18])
    filters.put(
        ConsumerFilterData(
            topic="T", consumer_group="g", expression="a > 1", born_time=NOW, client_version=5, bloom_filter_data=bits
        )
    )
    for table in (topics, groups, offsets, delays, filters):
        table.save(path)


def ask(name_server: str, command: str, *arguments: object) -> list[list[str]]:
    """What mqadmin prints, its lines cut into words."""
    text = java("4.9.4", "Admin", command, "-n", name_server, *arguments)
    return [line.split() for line in text.splitlines()]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_real_broker_knows_what_was_written_and_writes_the_same(tmp_path: Path) -> None:
    directory = tmp_path / "mq"
    store = directory / "store"
    write_store(store)
    write_config(store)
    with RocketMQ("4.9.4", directory, *GEOMETRY) as broker:
        name_server = broker.name_server
        topics = {words[0] for words in ask(name_server, "topicList") if words}
        route = "".join("".join(words) for words in ask(name_server, "topicRoute", "-t", "T"))
        progress = ask(name_server, "consumerProgress", "-g", "g")
        cluster = ("-c", "DefaultCluster")
        ask(name_server, "updateTopic", *cluster, "-t", "later", "-r", 5, "-w", 5)
        ask(name_server, "updateSubGroup", *cluster, "-g", "later", "-r", 7)
    assert {"T", "read-only", "%RETRY%g", "%RETRY%h"} <= topics
    assert '"readQueueNums":3' in route
    assert '"writeQueueNums":2' in route
    lines = [words for words in progress if words and words[0] == "T"]
    assert [(int(words[2]), int(words[3]), int(words[4])) for words in lines] == [(0, 4, 1), (1, 4, 2), (2, 4, 0)]
    check_written(store, tmp_path)


def check_written(store: Path, tmp_path: Path) -> None:
    """The broker's files have what was written before, and what came to it; made anew, they are the same bytes."""
    write_config(tmp_path)
    topics, told = TopicConfigTable.load(tmp_path), TopicConfigTable.load(store)
    assert told["later"] == TopicConfig(topic_name="later", read_queue_nums=5, write_queue_nums=5)
    assert told.data_version.counter == topics.data_version.counter + len(told) - len(topics)
    for name in set(told) - set(topics):
        topics.put(told[name], now=told.data_version.timestamp)
    topics.save(tmp_path)
    groups, told_groups = (
        SubscriptionGroupTable.load(tmp_path, built_in_groups()),
        SubscriptionGroupTable.load(store),
    )
    assert told_groups["later"].retry_max_times == 7
    for name in set(told_groups) - set(groups):
        groups.put(told_groups[name], now=1)
    groups.data_version = told_groups.data_version
    groups.save(tmp_path)
    assert rmqfast.open_store(store).consumer_offsets() == OFFSETS
    assert dict(DelayOffsetTable.load(store)) == {18: 4}
    filters, told_filters = ConsumerFilterTable.load(tmp_path), ConsumerFilterTable.load(store)
    assert told_filters["T", "g"].dead
    filters.put(replace(filters["T", "g"], dead_time=told_filters["T", "g"].dead_time))
    filters.save(tmp_path)
    for table in (TopicConfigTable, SubscriptionGroupTable, DelayOffsetTable, ConsumerFilterTable):
        made, found = (path / "config" / table.FILE_NAME for path in (tmp_path, store))
        assert made.read_text() == found.read_text()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("setting", "databases", "written"),
    [
        ("storeType=defaultRocksDB", ("topics", "consumerOffsets"), True),
        ("configManagerVersion=v2", ("rdb", "rdb"), False),
    ],
)
def test_what_a_real_5_keeps_in_rocksdb_is_told_and_had_from_the_broker(
    tmp_path: Path, setting: str, databases: tuple[str, str], written: bool
) -> None:
    kinds = "topics;subscriptionGroups;consumerOffsets"
    with RocketMQ("5.3.3", tmp_path / "mq", *GEOMETRY, setting, clean=False) as broker:
        broker.create_topic("T", 2)
        store = rmqfast.open_store(broker.store)
        for database, read in zip(databases, (store.topic_configs, store.consumer_offsets), strict=True):
            with pytest.raises(UnsupportedStoreError, match=f"config/{database}: "):
                read()
        assert len([note for note in store.info().notes if f"config/{databases[0]}: " in note]) == (1 if written else 3)
        # what the error names: a broker of the second kind says that it is done, and writes nothing
        java("5.3.3", "Admin", "rocksDBConfigToJson", "-b", broker.broker, "-t", kinds)
        if written:
            assert store.topic_configs()["T"].read_queue_nums == 2
            assert store.consumer_offsets() == {}
        else:
            with Admin(name_server=broker.name_server) as admin:
                assert "T" in admin.topics.all()
            with pytest.raises(UnsupportedStoreError):
                store.topic_configs()
