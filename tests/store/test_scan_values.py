"""A scan as a value: its schema, count, limit and head, and what becomes of it in threads, processes and notebooks."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest

import rmqfast
from rmqfast import DamageWarning, Message
from rmqfast.errors import ArgumentError, ArgumentTypeError, UnknownColumnError
from rmqfast.store import COLUMNS, Scan, scan_source
from rmqfast.store.dataset import ScanDataset
from rmqfast.store.fragment import Fragment
from tests.golden_stores import PathOf
from tests.reference.writer import Message as Stored
from tests.reference.writer import Options, write_store

from .small_store import COUNT, small_store
from .test_queries_random import LIGHT, some_scan, write_light_store, write_odd_store

pytestmark = pytest.mark.slow
PLACE = ["topic", "queue_id", "queue_offset", "physical_offset"]


@pytest.fixture
def golden(golden_store: PathOf) -> rmqfast.MessageStore:
    return rmqfast.open_store(golden_store("basic-4.9.4"))


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> rmqfast.MessageStore:
    path = tmp_path_factory.mktemp("light") / "store"
    write_light_store(path)
    return rmqfast.open_store(path)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> rmqfast.MessageStore:
    path = tmp_path_factory.mktemp("odd") / "store"
    write_odd_store(path)
    return rmqfast.open_store(path)


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """Another process, which starts afresh."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("columns", [None, [], ["body"], ["tags", "topic"], ["properties", "store_timestamp"]])
def test_the_schema_is_that_of_the_table(golden: rmqfast.MessageStore, columns: Sequence[str] | None) -> None:
    scan = golden.scan("fx_q1", columns=columns)
    assert scan.schema == scan.to_arrow().schema == scan.dataset().schema == scan.head(1).schema
    assert scan.schema.names == list(COLUMNS if columns is None else columns)


@pytest.mark.parametrize("name", ["basic-4.9.4", "crash-4.9.4", "delaytx-5.3.3", "offsets-4.9.4"])
def test_the_count_is_that_of_the_rows(golden_store: PathOf, name: str) -> None:
    store = rmqfast.open_store(golden_store(name))
    chance = random.Random(name)
    for _ in range(30):
        scan = some_scan(chance, store)
        assert scan.count() == scan.dataset().count_rows() == len(scan.to_arrow()), scan.request


def test_the_count_of_light_queues_and_odd_stores_is_that_of_the_rows(
    light: rmqfast.MessageStore, odd: rmqfast.MessageStore
) -> None:
    chance = random.Random(7)
    for store in [light, odd] * 20:
        scan = some_scan(chance, store)
        assert scan.count() == len(scan.to_arrow()), scan.request


def test_a_count_that_reads_tells_of_damage_and_one_of_queues_counts_what_they_list(tmp_path: Path) -> None:
    store = small_store(tmp_path / "store")
    store.patch(store.records[20].physical_offset, bytes(8))
    with rmqfast.open_store(store.path) as opened:
        assert opened.scan("T").count() == COUNT
        with pytest.warns(DamageWarning) as caught:
            assert opened.scan("T", tags="t0 || t1 || t2", way="log").count() == COUNT - 1
        assert [warning.filename for warning in caught] == [__file__]
        with pytest.raises(rmqfast.errors.CorruptError):
            opened.scan("T", tags="t0 || t1 || t2", way="log", on_damage="fail").count()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [0, 1, 7, 500, 1259, 5000])
def test_a_limit_ends_a_scan(golden: rmqfast.MessageStore, rows: int, threads: int) -> None:
    scan = golden.scan("fx_q1", threads=threads, way="log", batch_rows=100)
    limited, expected = scan.limit(rows), min(rows, 1259)
    assert len(limited.to_arrow()) == len(limited.to_polars()) == limited.count() == expected
    assert len(limited.limit(3).to_arrow()) == min(expected, 3)
    assert len(limited.limit(10**6).to_arrow()) == expected
    if threads == 1:
        assert limited.to_arrow() == scan.to_arrow().slice(0, rows)
    else:
        offsets = limited.to_arrow()["physical_offset"].to_pylist()
        assert len(set(offsets)) == expected


def test_a_limit_is_a_number_of_rows(golden: rmqfast.MessageStore) -> None:
    scan = golden.scan("fx_q1")
    with pytest.raises(ArgumentError, match="rows: expected 0 or more, got -1"):
        scan.limit(-1)
    with pytest.raises(ArgumentTypeError, match="rows: expected an integer, got '3'"):
        scan.head("3")  # type: ignore[arg-type]
    assert scan.head().num_rows == 5
    assert scan.head(np.int64(2)).to_pydict() == scan.to_arrow().slice(0, 2).to_pydict()


@pytest.mark.parametrize("way", ["log", "queue"])
def test_a_limit_does_not_meet_damage_behind_it(tmp_path: Path, way: scan_source.Way) -> None:
    store = small_store(tmp_path / "store")
    store.patch(store.records[30].physical_offset, bytes(8))
    with rmqfast.open_store(store.path) as opened:
        scan = opened.scan("T", way=way, on_damage="fail", columns=["queue_offset"])
        assert scan.limit(20).to_arrow()["queue_offset"].to_pylist() == list(range(20))
        with pytest.raises(rmqfast.errors.CorruptError):
            scan.limit(31).to_arrow()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert opened.scan("T", way=way).limit(20).count() == 20


def test_a_scan_with_a_limit_is_not_narrowed_by_a_filter(golden: rmqfast.MessageStore) -> None:
    limited = golden.scan("fx_q1").limit(50)
    of_tag = limited.to_arrow().filter(pc.field("tags") == "TagA")
    assert 0 < len(of_tag) < 50
    dataset = limited.dataset()
    assert dataset.to_table(filter=dataset.field("tags") == "TagA").equals(of_tag)
    assert len(dataset.head(1000, filter=dataset.field("tags") == "TagA")) == len(of_tag)
    assert [len(part.to_table(filter=pc.field("tags") == "TagA")) for part in dataset.get_fragments()] == [len(of_tag)]
    assert len(limited.lazy().filter(pl.col("tags") == "TagA").collect()) == len(of_tag)


def test_light_queues_are_not_narrowed_by_where_their_messages_lie(light: rmqfast.MessageStore) -> None:
    for topic in (LIGHT[0], [LIGHT[0], "orders"]):
        scan = light.scan(topic)
        whole = scan.to_arrow()
        for condition in (
            pc.field("topic") == "orders",
            pc.field("topic") == LIGHT[0],
            pc.field("queue_id") == 1,
            pc.field("queue_offset") < 10,
            pc.field("queue_offset") >= 10,
        ):
            assert scan.dataset().to_table(filter=condition).equals(whole.filter(condition)), condition
        # a tag is the message's own
        assert scan.narrow(None, ("=", "tags", ["t1"])).request.tags == "t1"
        assert scan.narrow(None, ("=", "queue_id", [1])).request.queue_ids is None


@pytest.mark.parametrize(
    "tag", ["TagA", "", " ", "a b", " a", "a\t", "\x03a", "*", "a|b", "a||b", "|", "标签", "none", "(", '"]), (']
)
def test_a_tag_means_itself(odd: rmqfast.MessageStore, tag: str) -> None:
    for topic in ("T", ["Aa", "BB"], None):
        scan = odd.scan(topic)
        whole = scan.to_arrow()
        for condition in (pc.field("tags") == tag, pc.field("tags").isin([tag, "Aa"]), pc.field("tags").isin([tag])):
            assert scan.dataset().to_table(filter=condition).equals(whole.filter(condition))
        of_tag = scan.lazy().filter(pl.col("tags") == tag).collect()
        assert len(of_tag) == whole["tags"].to_pylist().count(tag)


def test_a_topic_of_a_filter_has_also_messages_of_no_queue(odd: rmqfast.MessageStore) -> None:
    scan = odd.scan(columns=PLACE)
    dataset = scan.dataset()
    of_filter = dataset.to_table(filter=dataset.field("topic") == "T")
    assert of_filter.equals(scan.to_arrow().filter(pc.field("topic") == "T"))
    # half messages, which a scan of the topic leaves out
    assert len(of_filter) > odd.scan("T").count()
    both = (dataset.field("topic") == "T") & (dataset.field("topic") == "Aa")
    assert len(dataset.to_table(filter=both)) == 0


@pytest.mark.parametrize("value", [0, -1, 1 << 40, (1 << 63) - 1, (1 << 63) - 2, -(1 << 63), -(1 << 63) + 1])
def test_offsets_at_the_edges_of_their_type(odd: rmqfast.MessageStore, value: int) -> None:
    scan = odd.scan("Aa", columns=PLACE)
    whole, column = scan.to_arrow(), pc.field("queue_offset")
    offset = pa.scalar(value, pa.int64())
    for condition in (column < offset, column <= offset, column > offset, column >= offset, column == offset):
        assert scan.dataset().to_table(filter=condition).equals(whole.filter(condition)), condition
    name = pl.col("queue_offset")
    frame = pl.DataFrame(whole)
    for test in (name < value, name <= value, name > value, name >= value, name == value):
        assert scan.lazy().filter(test).collect().equals(frame.filter(test)), test


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_each_unit(odd: rmqfast.MessageStore, unit: Any) -> None:
    scan = odd.scan(columns=["store_timestamp"])
    whole = scan.to_arrow()
    middle = whole["store_timestamp"][150].as_py().timestamp()
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    for extra in (-1, 0, 1, per_second // 2000):
        count = round(middle * 1000) * per_second // 1000 + extra
        value, column = pa.scalar(count, pa.timestamp(unit, "UTC")), pc.field("store_timestamp")
        for condition in (column < value, column <= value, column > value, column >= value, column == value):
            assert scan.dataset().to_table(filter=condition).equals(whole.filter(condition)), condition
        at = np.datetime64(count, unit)
        frame, name = pl.DataFrame(whole), pl.col("store_timestamp")
        literal = pl.lit(at).dt.replace_time_zone("UTC")
        for test in (name < literal, name <= literal, name >= literal, name == literal):
            assert scan.lazy().filter(test).collect().equals(frame.filter(test)), test


def test_times_that_no_calendar_has(odd: rmqfast.MessageStore) -> None:
    scan = odd.scan(columns=["store_timestamp"])
    dataset, whole = scan.dataset(), scan.to_arrow()
    for count in (-(1 << 62), -(1 << 54), -1, 0, 1 << 54, 1 << 62):
        value = pa.scalar(count, pa.timestamp("ms", "UTC"))
        for condition in (dataset.field("store_timestamp") < value, dataset.field("store_timestamp") > value):
            assert len(dataset.to_table(filter=condition)) == len(whole.filter(condition))
    late = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert len(scan.lazy().filter(pl.col("store_timestamp") < late).collect()) == len(whole)


@pytest.mark.parametrize("levels", [5, 15, 40, 200])
def test_a_predicate_that_is_too_deep_is_still_exact(odd: rmqfast.MessageStore, levels: int) -> None:
    scan = odd.scan("T")
    whole = scan.to_arrow()
    condition, expression = pc.field("tags") == ")" * 50, pl.col("tags") == ")" * 50
    for n in range(levels):
        # the other side first, so that parentheses of values would hide those of the expression
        condition = (pc.field("tags") == f"{')' * 20}{n}") | (condition & (pc.field("queue_id") >= 0))
        condition |= pc.field("tags") == "TagA"
        expression = (pl.col("tags") == f"{n}") | (expression & (pl.col("queue_id") >= 0)) | (pl.col("tags") == "TagA")
    wanted = whole.filter(pc.field("tags") == "TagA")
    assert scan.dataset().to_table(filter=condition).equals(wanted)
    assert len(scan.lazy().filter(expression).collect()) == len(wanted)


def places(scan: Scan | ScanDataset | Fragment) -> list[Any]:
    table = scan.to_arrow() if isinstance(scan, Scan) else scan.to_table()
    return sorted(zip(*(table[name].to_pylist() for name in PLACE), strict=True))


def places_elsewhere(pickled: bytes, directory: Path) -> list[Any]:
    os.chdir(directory)
    return places(pickle.loads(pickled))  # noqa: S301


def test_a_scan_is_read_in_another_process(
    golden: rmqfast.MessageStore, process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    scans = {
        "one topic": golden.scan("fx_q1", columns=PLACE),
        "some columns of all": golden.scan(columns=PLACE, tags="TagA"),
        "threads": golden.scan(["fx_q1", "fx_q2"], columns=PLACE, threads=2),
        "by queue": golden.scan("fx_q4", columns=PLACE, way="queue", start_offset={0: 5, 1: 7}),
        "limited": golden.scan("fx_q1", columns=PLACE).limit(11),
    }
    for name, scan in scans.items():
        assert process.submit(places_elsewhere, pickle.dumps(scan), tmp_path).result() == places(scan), name
        table = scan.dataset().filter(pc.field("queue_offset") >= 3)
        assert process.submit(places_elsewhere, pickle.dumps(table), tmp_path).result() == places(table), name
        fragments = list(scan.dataset().get_fragments())
        parts = [process.submit(places_elsewhere, pickle.dumps(part), tmp_path).result() for part in fragments]
        assert sorted(row for part in parts for row in part) == places(scan), name


def test_a_scan_of_a_relative_path_is_read_from_another_directory(
    process: ProcessPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [Stored("T", b"%d" % n) for n in range(30)]
    write_store(tmp_path / "store", messages, Options(1 << 10, 400, commitlog_dirs=("a", "b")))
    monkeypatch.chdir(tmp_path)
    scan = rmqfast.open_store("store", commit_log_dirs=["store/a", "store/b"]).scan("T")
    assert len(process.submit(places_elsewhere, pickle.dumps(scan), Path("/")).result()) == 30


def test_a_scan_has_the_messages_of_its_store_when_it_was_pickled(process: ProcessPoolExecutor, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with rmqfast.open_store(path, mode="a", options=rmqfast.AppendOptions(file_size=1 << 16)) as writer:
        writer.append_many([Message("T", b"first", tags="a")] * 50)
        scans = [writer.scan("T"), writer.scan(), writer.scan("T", tags="a"), writer.scan("T").limit(20)]
        before = [(pickle.dumps(scan), len(scan.to_arrow())) for scan in scans]
        assert [count for _, count in before] == [50, 50, 50, 20]
        writer.append_many([Message("T", b"second", tags="a")] * 2000)
        writer.flush()
        for pickled, count in before:
            assert len(pickle.loads(pickled).to_arrow()) == count  # noqa: S301
            assert pickle.loads(pickled).count() == count  # noqa: S301
            assert len(process.submit(places_elsewhere, pickled, tmp_path).result()) == count
            # again, after another pickling
            assert len(pickle.loads(pickle.dumps(pickle.loads(pickled))).to_arrow()) == count  # noqa: S301


def test_a_pickled_scan_keeps_what_it_does_about_damage(tmp_path: Path) -> None:
    store = small_store(tmp_path / "store")
    store.patch(store.records[20].physical_offset, bytes(8))
    with rmqfast.open_store(store.path) as opened:
        failing = pickle.loads(pickle.dumps(opened.scan("T", way="log", on_damage="fail")))  # noqa: S301
        with pytest.raises(rmqfast.errors.CorruptError):
            failing.to_arrow()
        warning = pickle.loads(pickle.dumps(opened.scan("T", way="log")))  # noqa: S301
        with pytest.warns(DamageWarning):
            assert len(warning.to_arrow()) == COUNT - 1


def test_a_scan_of_a_store_that_is_gone_says_so(tmp_path: Path) -> None:
    store = small_store(tmp_path / "store")
    with rmqfast.open_store(store.path) as opened:
        pickled = pickle.dumps(opened.scan("T"))
    store.path.rename(tmp_path / "moved")
    with pytest.raises(rmqfast.errors.StoreNotFoundError, match="no such file or directory"):
        pickle.loads(pickled)  # noqa: S301


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_reads_the_same(golden: rmqfast.MessageStore, copied: Callable[[Any], Any]) -> None:
    scan = golden.scan("fx_q1").limit(100)
    assert copied(scan).to_arrow().equals(scan.to_arrow())
    dataset = scan.dataset().filter(pc.field("queue_offset") < 50)
    assert copied(dataset).to_table().equals(dataset.to_table())


def test_threads_share_a_scan(golden: rmqfast.MessageStore) -> None:
    scan = golden.scan("fx_q1", batch_rows=50)
    whole, dataset, lazy = golden.scan("fx_q1").to_arrow(), golden.table("fx_q1"), golden.scan("fx_q1").lazy()
    reads: list[Callable[[], int]] = [
        lambda: len(scan.to_arrow()),
        lambda: len(pa.table(scan)),
        lambda: len(dataset.to_table(filter=pc.field("queue_offset") >= 0)),
        lambda: len(lazy.collect()),
        scan.count,
    ]
    with ThreadPoolExecutor(8) as pool:
        rows = [pool.submit(reads[n % len(reads)]) for n in range(40)]
        assert {each.result() for each in rows} == {len(whole)}


def test_parts_have_each_message_once(golden: rmqfast.MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # pieces of a small store
    monkeypatch.setattr(scan_source, "_PIECE_BYTES", 100_000)
    for scan in (golden.scan("fx_q1"), golden.scan(), golden.scan(["fx_q4", "fx_q8"], tags="TagA")):
        parts = list(scan.dataset().get_fragments())
        assert len(parts) > 1
        assert sorted(row for part in parts for row in places(part)) == places(scan)
        assert sum(part.count_rows() for part in parts) == scan.count()
        filtered = list(scan.dataset().get_fragments(pc.field("queue_offset") < 20))
        rows = [len(part.to_table(filter=pc.field("queue_offset") < 20)) for part in filtered]
        assert sum(rows) == len(scan.to_arrow().filter(pc.field("queue_offset") < 20))


def test_a_dataset_answers_each_method_of_pyarrow(golden: rmqfast.MessageStore) -> None:
    public = {name for name in dir(pyarrow.dataset.Dataset) if not name.startswith("_")}
    # what is inherited would crash, because the dataset has no part in C++
    assert public <= vars(ScanDataset).keys()
    public_of_fragments = {"count_rows", "head", "partition_expression", "physical_schema", "scanner"}
    assert public_of_fragments | {"to_batches", "to_table"} <= set(dir(Fragment))
    dataset = golden.table("fx_q1")
    table = dataset.to_table()
    assert isinstance(dataset, pyarrow.dataset.Dataset)
    assert dataset.take([7, 3]).equals(table.take([7, 3]))
    assert (
        dataset.filter(dataset.field("tags") == "TagA")
        .head(3)
        .equals(table.filter(pc.field("tags") == "TagA").slice(0, 3))
    )
    assert dataset.head(3, ["tags"], dataset.field("tags") == "TagA").to_pydict() == {"tags": ["TagA"] * 3}
    assert dataset.to_table(columns={"next": dataset.field("queue_offset") + 1})["next"][0].as_py() == 1
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["tags"], batch_size=10)) == len(table)
    assert dataset.partition_expression.equals(pc.scalar(True))
    assert repr(golden.table("fx_q1", columns=["tags"])) == "ScanDataset(tags)"
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: dataset.join(dataset, "tags"), r"join: expected a table, got a scan: write to_table\(\)\.join"),
        (lambda: dataset.join_asof(dataset, "tags", "tags", 1), "join_asof: expected a table, got a scan"),
        (lambda: dataset.sort_by("tags"), r"sort_by: .* write to_table\(\)\.sort_by\('tags'\), or use SQL"),
        (lambda: dataset.replace_schema(pa.schema([])), r"schema: expected \['topic', .*, got \[\]"),
        (lambda: dataset.filter("tags = 'a'"), "filter: expected an expression, as field.* got \"tags = 'a'\""),
    ]
    for refused, text in refusals:
        with pytest.raises(ArgumentError, match=text):
            refused()


def test_a_column_that_does_not_exist_is_named(golden: rmqfast.MessageStore) -> None:
    with pytest.raises(UnknownColumnError, match="unknown column 'nothing'"):
        golden.table("fx_q1", columns=["nothing"])
    with pytest.raises(pa.ArrowInvalid, match="nothing"):
        golden.table("fx_q1").to_table(columns=["nothing"])
    with pytest.raises(pa.ArrowInvalid, match="nothing"):
        golden.table("fx_q1").to_table(filter=pc.field("nothing") == 1)


def test_a_closed_store_is_not_read_by_a_query(golden: rmqfast.MessageStore) -> None:
    dataset, lazy = golden.table("fx_q1"), golden.scan("fx_q1").lazy()
    golden.close()
    with pytest.raises(rmqfast.errors.StoreError, match="closed"):
        dataset.to_table()
    with pytest.raises(Exception, match="closed"):
        lazy.collect()


def test_an_option_that_no_scanner_has_is_refused(golden: rmqfast.MessageStore) -> None:
    table = golden.table("fx_q1")
    assert table.scanner(batch_size=10, cache_metadata=True).count_rows() == 1259
    with pytest.raises(TypeError, match="unexpected keyword argument 'filtr'"):
        table.to_table(filtr=table.field("queue_offset") < 3)
