"""The stores of several brokers as one: their scans are those of each, one after the other."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from rmqfast import AppendOptions, Message, MessageStores, open_store, open_stores
from rmqfast.errors import (
    ArgumentError,
    ArgumentTypeError,
    CorruptError,
    DamageWarning,
    DecodeError,
    DecodeWarning,
    RmqError,
    StoreError,
    StoreNotFoundError,
    UnknownColumnError,
    UnknownTopicError,
    UnsupportedStoreError,
)
from rmqfast.store import Scan
from tests.golden_stores import PathOf
from tests.harm import damage_second_record

SMALL = AppendOptions(file_size=1 << 13, queue_file_size=2000, index_slots=10, index_entries=100)


def fill(path: Path, topics: Sequence[str], count: int, start: int = 0) -> None:
    with open_store(path, mode="a", options=SMALL) as store:
        for number in range(start, start + count):
            message = Message(
                topics[number % len(topics)], b"%d" % number * 9, tags="ab"[number % 2], queue_id=number % 2
            )
            store.append(message)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stores of three brokers, beside something else. Not each topic is at each broker."""
    path = tmp_path_factory.mktemp("brokers")
    fill(path / "broker-a", ("orders", "bills"), 120)
    fill(path / "broker-b", ("orders",), 70)
    fill(path / "broker-c", ("bills", "other"), 30)
    (path / "logs").mkdir()
    return path


@pytest.fixture
def stores(directory: Path) -> MessageStores:
    return open_stores(directory)


def united(directory: Path, topic: str | None, names: Sequence[str], **arguments: Any) -> pa.Table:
    """The scans of each store alone, one after the other."""
    tables = []
    for name in names:
        with open_store(directory / name, broker_name=name) as store:
            tables.append(store.scan(topic, **arguments).to_arrow())
    return pa.concat_tables(tables)


def rows(scan: Scan) -> list[tuple[Any, ...]]:
    table = scan.to_arrow().select(["broker_name", "topic", "queue_id", "queue_offset"])
    return [tuple(row.values()) for row in table.to_pylist()]


def test_topics_are_merged(stores: MessageStores) -> None:
    assert stores.topics()["orders"] == {
        "broker-a": {0: (0, 60)},
        "broker-b": {0: (0, 35), 1: (0, 35)},
    }
    assert sorted(stores.topics()) == ["bills", "orders", "other"]
    assert list(stores.stores) == ["broker-a", "broker-b", "broker-c"]
    assert stores.stores["broker-b"].broker_name == "broker-b"


def test_a_scan_has_the_messages_of_each_store(directory: Path, stores: MessageStores) -> None:
    assert stores.scan().to_arrow() == united(directory, None, list(stores.stores))
    wanted = united(directory, "orders", ("broker-a", "broker-b"), tags="a")
    assert stores.scan("orders", tags="a").to_arrow() == wanted
    assert stores.scan("other").to_arrow() == united(directory, "other", ("broker-c",))


def test_real_stores_are_read_as_each_is(golden_store: PathOf) -> None:
    paths = {name: golden_store(name) for name in ("basic-4.9.4", "delaytx-5.3.3", "offsets-4.9.4")}
    each = []
    for name, path in paths.items():
        with open_store(path, broker_name=name) as store:
            each.append(store.scan().to_arrow())
    with open_stores(paths) as opened:
        assert opened.scan().to_arrow() == pa.concat_tables(each)


def test_random_requests_are_those_of_each_store(directory: Path, stores: MessageStores) -> None:
    made = random.Random(7)
    for _ in range(60):
        names = list(stores.stores)
        topic = made.choice([None, "orders", "bills"])
        having = [name for name in names if topic is None or name in stores.topics()[topic]]
        arguments: dict[str, Any] = {
            "tags": made.choice(["*", "a", "b || c"]),
            "columns": made.choice([None, ["broker_name", "queue_offset"], ["tags"]]),
            "queue_ids": made.choice([None, 0, [1, 0], []]),
            "start_offset": made.choice([None, 7, {0: 3, 1: 50}]),
            "end_offset": made.choice([None, 33, {1: 5}]),
            "batch_rows": made.choice([1, 100]),
            "way": made.choice([None, "log", "queue"]),
        }
        scan, wanted = stores.scan(topic, **arguments), united(directory, topic, having, **arguments)
        assert scan.to_arrow() == wanted, arguments
        assert scan.count() == wanted.num_rows
        most = made.randrange(40)
        assert scan.limit(most).to_arrow() == wanted.slice(0, most)
        threaded = stores.scan(topic, threads=3, **arguments).to_arrow()
        assert threaded.num_rows == wanted.num_rows


def test_offsets_may_differ_between_brokers(stores: MessageStores) -> None:
    scan = stores.scan("orders", start_offset={"broker-a": {0: 55}, "*": {0: 30, 1: 34}})
    assert rows(scan) == [
        *[("broker-a", "orders", 0, offset) for offset in range(55, 60)],
        *sorted(
            [("broker-b", "orders", 0, offset) for offset in range(30, 35)] + [("broker-b", "orders", 1, 34)],
            key=lambda row: row[3],
        ),
    ]
    assert stores.scan("orders", end_offset={"broker-b": {0: 0, 1: 0}}).count() == 60
    assert stores.scan("orders", start_offset={0: 33}).count() == 27 + 2 + 35
    with pytest.raises(ArgumentError, match="start_offset: expected names of broker-a, broker-b, broker-c, got 'x'"):
        stores.scan("orders", start_offset={"x": {0: 1}})
    with pytest.raises(ArgumentTypeError, match="expected offsets of queues by broker"):
        stores.scan("orders", start_offset={"broker-a": 5})  # type: ignore[arg-type]


def test_some_brokers_need_not_have_a_topic_but_one_must(stores: MessageStores) -> None:
    assert {row[1] for row in rows(stores.scan(["orders", "other"]))} == {"orders", "other"}
    for topic in ("order", ["orders", "order"]):
        with pytest.raises(UnknownTopicError, match="unknown topic 'order'; did you mean orders"):
            stores.scan(topic)
    assert stores.scan([]).count() == 0
    with pytest.raises(UnknownColumnError):
        stores.scan(columns=["none"])


def test_a_topic_that_no_queue_lists_yet_is_found(tmp_path: Path) -> None:
    fill(tmp_path / "a", ("orders", "bills"), 10)
    fill(tmp_path / "b", ("orders",), 10)
    # as of a broker that was killed before it has listed them
    shutil.rmtree(tmp_path / "a" / "consumequeue" / "bills")
    with open_stores(tmp_path) as stores:
        assert stores.scan("bills").count() == 5


def test_queries_read_the_stores_that_they_ask_for(stores: MessageStores) -> None:
    messages = stores.table()
    asked: Any = duckdb.sql(
        "select broker_name, count(*) from messages where broker_name > 'broker-a' group by all order by 1"
    )
    assert asked.fetchall() == [("broker-b", 70), ("broker-c", 30)]
    frame = messages.scan.lazy().filter(pl.col("broker_name").is_in(["broker-a", "none"]))
    assert frame.select(pl.len()).collect().item() == 120
    of_one = messages.scan.narrow(None, ("=", "broker_name", ["broker-c"]))
    assert {row[0] for row in rows(of_one)} == {"broker-c"}
    assert {piece.broker_name for piece in of_one.explain().pieces} == {"broker-c"}
    for condition in (("=", "broker_name", ["none"]), ("null", "broker_name", [])):
        assert messages.scan.narrow(None, condition).to_arrow().num_rows == 0
    assert messages.scan.narrow(None, ("not null", "broker_name", [])).count() == 220


def test_a_store_without_a_name_has_no_broker(directory: Path) -> None:
    with open_store(directory / "broker-a") as store:
        assert store.scan().narrow(None, ("=", "broker_name", ["broker-a"])).count() == 0
        assert store.scan().narrow(None, ("null", "broker_name", [])).count() == 120


def test_parts_have_each_message_once_also_elsewhere(stores: MessageStores) -> None:
    scan = stores.scan("orders")
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.parts()]  # noqa: S301
    assert len(parts) >= 2
    assert pa.concat_tables([part.to_arrow() for part in parts]) == scan.to_arrow()
    assert pickle.loads(pickle.dumps(scan)).to_arrow() == scan.to_arrow()  # noqa: S301
    with pytest.raises(TypeError, match="open the stores where they are used"):
        pickle.dumps(stores)


def test_an_explanation_names_the_brokers(stores: MessageStores) -> None:
    explanation = stores.scan("orders", tags="a").limit(5).explain()
    assert [piece.broker_name for piece in explanation.pieces] == ["broker-a", "broker-b"]
    assert (explanation.messages, explanation.limit) == (5, 5)
    assert "straight of broker-b from 0" in str(explanation)
    assert stores.scan("orders").explain().messages == 130
    assert json.loads(json.dumps(explanation.to_dict()))["pieces"][0]["broker_name"] == "broker-a"


def test_damage_is_named_by_its_broker(directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    log = damage_second_record(copy / "broker-b")
    with open_stores(copy) as stores:
        scan = stores.scan()
        with pytest.warns(
            DamageWarning, match=r"1 damaged places, the first of broker broker-b in .*broker-b/commitlog"
        ):
            assert scan.to_arrow().num_rows == 219
        assert [(place.broker_name, place.file) for place in scan.damage] == [("broker-b", str(log))]
        with pytest.raises(CorruptError, match="broker broker-b: "):
            stores.scan(on_damage="fail").to_arrow()


def test_bodies_that_cannot_be_decoded_are_named_by_their_broker(stores: MessageStores) -> None:
    body = {"decode": "json", "schema": "a int"}
    scan = stores.scan("other", **body)  # type: ignore[arg-type]
    with pytest.warns(DecodeWarning, match="the first that of message 0 of queue . of topic other of broker broker-c"):
        scan.to_arrow()
    assert {bad.broker_name for bad in scan.decode_errors} == {"broker-c"}
    every = stores.scan(**body, columns=["value"])  # type: ignore[arg-type]
    with pytest.warns(DecodeWarning, match="220 bodies could not be decoded"):
        every.to_arrow()
    assert len(every.decode_errors) == 100
    with pytest.raises(DecodeError, match="broker broker-a: "):
        stores.scan(**body, on_error="fail").to_arrow()  # type: ignore[arg-type]


def test_a_snapshot_stays_until_it_is_refreshed(directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    with open_stores(str(copy / "broker-[ab]")) as stores:
        before = stores.scan()
        fill(copy / "broker-a", ("orders",), 5)
        assert (stores.scan().count(), before.count()) == (190, 190)
        stores.refresh()
        assert (stores.scan().count(), before.count()) == (195, 190)
        last = stores.stores["broker-a"].info().last_store_timestamp
        assert last is not None
        assert stores.diff(0, last).count() == 195
    with pytest.raises(StoreError, match="the store is closed"):
        before.to_arrow()


def test_paths_are_named_or_found(directory: Path, tmp_path: Path) -> None:
    def names(stores: Any) -> list[str]:
        with open_stores(stores) as opened:
            return list(opened.stores)

    assert names({"y": directory / "broker-b", "x": str(directory / "broker-a")}) == ["x", "y"]
    assert names(f"file://{directory}") == ["broker-a", "broker-b", "broker-c"]
    (tmp_path / "nested").mkdir()
    for name in ("m", "n"):
        shutil.copytree(directory / "broker-c", tmp_path / "nested" / name / "store")
    assert names(tmp_path / "nested" / "*" / "store") == ["m", "n"]
    # `storePathCommitLog` elsewhere
    (tmp_path / "nested" / "m" / "store" / "commitlog").rename(tmp_path / "log")
    with open_stores({"m": tmp_path / "nested" / "m" / "store"}, commit_log_dirs={"m": [tmp_path / "log"]}) as opened:
        assert opened.scan().count() == 30


def test_what_is_no_group_of_stores_is_refused(directory: Path, tmp_path: Path) -> None:
    refused: list[tuple[Any, type[RmqError], str]] = [
        (
            directory / "broker-a",
            ArgumentError,
            "expected a directory that contains stores, got the store .*: use open_store",
        ),
        (directory / "nowhere", StoreNotFoundError, "no such file"),
        (directory / "x*", UnsupportedStoreError, "expected a directory with commitlog/ that matches this pattern"),
        (tmp_path, UnsupportedStoreError, "no RocketMQ store"),
        ({}, ArgumentError, "stores: expected paths by broker name, got none"),
        ({"": directory}, ArgumentError, "stores: expected the name of a broker, got ''"),
        ({"a": "s3://bucket/a"}, ArgumentError, "stores: a: expected a path of this machine"),
        ({"a": directory / "broker-a", "b": directory / "none"}, StoreNotFoundError, "no such file"),
    ]
    for stores, error, text in refused:
        with pytest.raises(error, match=text):
            open_stores(stores)
    with pytest.raises(ArgumentError, match="commit_log_dirs: expected names of a, got 'b'"):
        open_stores({"a": directory / "broker-a"}, commit_log_dirs={"b": []})
    with pytest.raises(
        UnsupportedStoreError, match=r"the stores of broker-a, broker-b, broker-c are in it: name one, or open_stores"
    ):
        open_store(directory)


def test_closed_stores_are_told(directory: Path) -> None:
    opened = open_stores(directory)
    assert repr(opened).startswith("MessageStores({'broker-a': ")
    assert "broker-c" in opened._repr_html_()
    opened.close()
    opened.close()
    with pytest.raises(StoreError, match="the store is closed"):
        opened.scan()
