"""Topics by pattern, and the stores of several brokers, as one table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rmqfast
from rmqfast import Message
from rmqfast.errors import ArgumentError, CorruptError, UnknownTopicError
from rmqfast.mirror import Mirror
from tests.cli.command_line import run
from tests.harm import damage_second_record
from tests.spark.live import topics
from tests.tables.lakes import Lake
from tests.tables.stored_rows import SMALL, append, by_place, scanned


@pytest.fixture
def delta(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", "delta")


def test_a_pattern_takes_topics_that_are_created_later(tmp_path: Path, delta: Lake) -> None:
    store = tmp_path / "store"
    append(store, 300)
    assert delta.ingest(store, pattern="topic-[13]").rows == 100
    append(store, 400, topics=4, start=300)
    with rmqfast.open_store(store, mode="a", options=SMALL) as opened:
        opened.append(Message("%RETRY%topic-1", b"again"))
        opened.append(Message("a-topic-1", b"other"))
    assert delta.ingest(store, pattern="topic-[13]").rows == 200
    assert delta.rows() == scanned(store, ["topic-1", "topic-3"])
    assert delta.ingest(store, pattern="none", table="other").rows == 0
    with pytest.raises(ArgumentError, match=r"pattern: expected 'topic-\[13\]', with which .* was begun, got "):
        delta.ingest(store, pattern="topic-.*")
    with pytest.raises(ArgumentError, match="expected a regular expression"):
        delta.ingest(store, pattern="topic-(", table="another")
    with pytest.raises(ArgumentError, match="pattern: expected none beside topics"):
        delta.ingest(store, ["topic-1"], pattern="topic-1")


def test_a_pattern_takes_records_that_no_queue_lists_yet(tmp_path: Path, delta: Lake) -> None:
    store = tmp_path / "store"
    append(store, 300)
    # as of a broker that was killed before it has listed them
    shutil.rmtree(store / "consumequeue" / "topic-1")
    for queue in (store / "consumequeue" / "topic-2").iterdir():
        for file in queue.iterdir():
            file.write_bytes(bytes(file.stat().st_size))
    rows = scanned(store)
    wanted = [row for row in rows if row["topic"] == "topic-1"]
    assert wanted
    assert delta.ingest(store, pattern="topic-1").rows == len(wanted)


@pytest.mark.slow
def test_a_pattern_is_of_a_cluster_s_topics_too(tmp_path: Path, delta: Lake) -> None:
    with topics.cluster_in(tmp_path / "cluster") as running:
        for name in ("orders-eu", "bills"):
            topics.create(running, name)
            topics.fill(running, 50, name)
        cluster = rmqfast.open_cluster(running.name_server)
        assert delta.ingest(cluster, pattern="orders-.*").rows == 50
        topics.create(running, "orders-us")
        topics.fill(running, 30, "orders-us")
        assert delta.ingest(cluster, pattern="orders-.*").rows == 30
        assert {row["topic"] for row in delta.rows()} == {"orders-eu", "orders-us"}


def test_stores_of_several_brokers_are_one_table(tmp_path: Path, lake: Lake) -> None:
    brokers = tmp_path / "brokers"
    append(brokers / "broker-a", 300)
    append(brokers / "broker-b", 200, topics=4)
    assert lake.ingest(brokers).rows == 500
    append(brokers / "broker-b", 50, topics=4, start=200)
    append(brokers / "broker-c", 25)
    written = lake.ingest(brokers)
    assert (written.rows, written.commits) == (75, 1)
    assert lake.ingest(brokers).rows == 0
    wanted = [
        row | {"broker_name": name} for name in ("broker-a", "broker-b", "broker-c") for row in scanned(brokers / name)
    ]
    assert lake.rows() == by_place(wanted)
    # topics that only some brokers have
    assert lake.ingest(brokers, ["topic-3", "topic-1"], table="few").rows == 100 + 63 + 62 + 8
    with pytest.raises(UnknownTopicError, match="topic-9"):
        lake.ingest(brokers, ["topic-9"], table="none")
    shutil.rmtree(brokers / "broker-c")
    assert any("broker broker-c: its store is not there any more" in text for text in lake.ingest(brokers).losses)


def test_stores_are_found_by_a_pattern_named_or_open(tmp_path: Path, delta: Lake) -> None:
    brokers = tmp_path / "brokers"
    for name, count in (("broker-a", 30), ("broker-b", 20), ("other", 10)):
        append(brokers / name / "store", count)
    assert delta.ingest(brokers / "broker-*" / "store").rows == 50
    # the same brokers, so the table continues
    by_name = {name: brokers / name / "store" for name in ("broker-a", "broker-b")}
    append(brokers / "broker-b" / "store", 5, start=20)
    assert delta.ingest(by_name).rows == 5
    append(brokers / "broker-a" / "store", 7, start=30)
    with rmqfast.open_stores(by_name) as opened:
        assert delta.ingest(opened).rows == 7
    wanted = [row | {"broker_name": name} for name, path in by_name.items() for row in scanned(path)]
    assert delta.rows() == by_place(wanted)
    with pytest.raises(ArgumentError, match=r"source: expected stores of several brokers, with which .* got a store"):
        delta.ingest(by_name["broker-a"])
    (brokers / "other" / "store" / "commitlog").rename(tmp_path / "log")
    elsewhere = {"other": brokers / "other" / "store"}
    with (
        rmqfast.open_stores(elsewhere, commit_log_dirs={"other": [tmp_path / "log"]}) as opened,
        pytest.raises(ArgumentError, match="source: expected stores with their commitlog/, got that of other in"),
    ):
        delta.ingest(opened, table="another")


def test_damage_names_its_broker(tmp_path: Path, delta: Lake) -> None:
    brokers = tmp_path / "brokers"
    append(brokers / "broker-a", 30)
    append(brokers / "broker-b", 30)
    damage_second_record(brokers / "broker-b")
    with pytest.raises(CorruptError, match=r"ends before 1 damaged places: broker broker-b, .* at offset"):
        delta.ingest(brokers)
    assert [place.broker_name for place in delta.ingest(brokers, on_damage="warn").damage] == ["broker-b"]
    delta.ingest(brokers, errors=True, table="sorted")
    assert delta.read("sorted__errors").column("broker_name").to_pylist() == ["broker-b"]


@pytest.mark.slow
def test_a_mirror_s_copies_are_one_table(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", "parquet")
    with topics.live_cluster(tmp_path / "cluster") as live:
        config = rmqfast.ClientConfig(name_server=live.name_server)
        with Mirror(tmp_path / "copies", all_brokers=True, once=True, config=config) as mirror:
            while not mirror.wait(1):
                pass
        out = ("--out", lake.out(), "--topic", "orders", "-o", "json")
        assert run("ingest", tmp_path / "copies", *out).exit_code == 0
        cluster = rmqfast.open_cluster(live.name_server)
        pulled = Lake(tmp_path / "pulled", "parquet")
        pulled.ingest(cluster, ["orders"])
        assert lake.rows() == pulled.rows()
