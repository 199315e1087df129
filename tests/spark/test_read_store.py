"""`read_store` against what RocketMQ's own classes read from the golden stores, and against `MessageStore.scan`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import pytest

import rmqfast
from rmqfast.spark import read_store
from rmqfast.spark.reader import store_read
from rmqfast.store import COLUMNS
from tests import golden_stores
from tests.golden_stores import PathOf

from .conditions import ARGUMENTS
from .in_process import partition_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.old_spark]

Rows = Callable[["DataFrame"], list[golden_stores.Line]]
Engine = Literal["columnar", "arrow", "pandas"]
ENGINES: tuple[Engine, ...] = ("columnar", "arrow", "pandas")
# what tasks give of the other stores is seen in `test_partition_rows.py`; the JVM has columns of its own making
GOLDEN: list[tuple[str, Engine]] = [
    *((name, "columnar") for name in golden_stores.NAMES),
    ("basic-4.9.4", "arrow"),
    ("delaytx-5.3.3", "pandas"),
]


@pytest.mark.parametrize(("name", "engine"), GOLDEN)
def test_a_golden_store_gives_the_rows_that_rocketmq_gives(
    spark: SparkSession, golden_store: PathOf, rows_of: Rows, name: str, engine: Engine
) -> None:
    on_damage: Literal["fail", "warn"] = "warn" if name.startswith("damaged") else "fail"
    frame = read_store(spark, golden_store(name), None, engine=engine, on_damage=on_damage)
    wanted = golden_stores.expected_rows(name)
    assert list(golden_stores.differences(rows_of(frame), wanted)) == []
    assert wanted


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_choose_in_the_jvm_what_they_choose_here(
    spark: SparkSession, golden_store: PathOf, rows_of: Rows, arguments: Mapping[str, Any]
) -> None:
    arguments = {**arguments, "columns": ["physical_offset"]}
    wanted = partition_rows(store_read(golden_store("basic-4.9.4"), "fx_q4", **arguments))
    frame = read_store(spark, golden_store("basic-4.9.4"), "fx_q4", engine="columnar", **arguments)
    assert rows_of(frame) == sorted(wanted, key=itemgetter("physical_offset"))
    assert 0 < len(wanted) < 451


def test_a_time_range_is_half_open_and_takes_texts(spark: SparkSession, golden_store: PathOf, rows_of: Rows) -> None:
    times = [row["store_timestamp"] for row in golden_stores.expected_rows("basic-4.9.4")]
    start, end = times[len(times) // 3], times[2 * len(times) // 3]
    frame = read_store(spark, golden_store("basic-4.9.4"), None, start_time=start, end_time=end)
    assert [row["store_timestamp"] for row in rows_of(frame)] == [t for t in times if start <= t < end]
    frame = read_store(spark, golden_store("basic-4.9.4"), None, start_time=start, as_of=end)
    assert [row["store_timestamp"] for row in rows_of(frame)] == [t for t in times if start <= t <= end]
    reader = spark.read.format("rocketmq-columnar").option("asOf", str(end)).load(str(golden_store("basic-4.9.4")))
    assert reader.count() == sum(t <= end for t in times)
    assert read_store(spark, golden_store("basic-4.9.4"), None, end_time="2020-01-01T00:00:00+08:00").count() == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_come_in_the_order_they_are_asked_for(
    spark: SparkSession, golden_store: PathOf, engine: Engine
) -> None:
    columns = ["tags", "properties", "queue_offset", "body", "topic"]
    frame = read_store(
        spark, golden_store("basic-4.9.4"), "fx_q1", columns=columns, engine=engine, broker_name="b"
    ).where("queue_offset = 1")
    (row,) = frame.collect()
    assert frame.columns == columns
    assert (row.tags, row.queue_offset, row.topic, row.properties["color"]) == ("BBBB", 1, "fx_q1", "green")
    assert bytes(row.body).startswith(b"tag tag queue")


def test_the_row_has_sparks_plain_types_and_every_column_may_be_null(spark: SparkSession, golden_store: PathOf) -> None:
    schema = read_store(spark, golden_store("basic-4.9.4"), None, broker_name="broker-a").schema
    assert tuple(schema.fieldNames()) == tuple(COLUMNS)
    assert {f.dataType.simpleString() for f in schema} == {
        "string", "int", "bigint", "binary", "timestamp", "map<string,string>",
    }  # fmt: skip
    assert all(field.nullable for field in schema)


def test_a_broker_name_that_is_given_is_the_rows(spark: SparkSession, golden_store: PathOf) -> None:
    frame = read_store(spark, golden_store("basic-4.9.4"), "fx_q1", broker_name="broker-a", columns=["broker_name"])
    assert [tuple(row) for row in frame.distinct().collect()] == [("broker-a",)]


def test_as_many_partitions_as_asked_for_and_few_without(spark: SparkSession, golden_store: PathOf) -> None:
    few = read_store(spark, golden_store("basic-4.9.4"), None, columns=["topic"])
    many = read_store(spark, golden_store("basic-4.9.4"), None, columns=["topic"], min_partitions=8)
    assert few.rdd.getNumPartitions() == 1
    assert 8 <= many.rdd.getNumPartitions() <= 24
    assert few.count() == many.count() == 2779


def test_reading_shuffles_nothing(
    spark: SparkSession, golden_store: PathOf, capsys: pytest.CaptureFixture[str]
) -> None:
    read_store(spark, golden_store("basic-4.9.4"), None, min_partitions=8, engine="arrow").explain()
    assert "Exchange" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [
        *((engine, {"tags": "nobody"}) for engine in ENGINES),
        ("columnar", {"start_time": "2100-01-01"}),
        ("columnar", {"start_offset": 1 << 40}),
    ],
)
def test_nothing_to_read_is_an_empty_frame(
    spark: SparkSession, golden_store: PathOf, engine: Engine, arguments: Mapping[str, Any]
) -> None:
    frame = read_store(spark, golden_store("basic-4.9.4"), "fx_q1", engine=engine, **arguments)
    assert (frame.count(), frame.collect()) == (0, [])


@pytest.mark.parametrize("engine", ENGINES)
def test_timestamps_are_moments_whatever_the_sessions_zone(
    spark: SparkSession, golden_store: PathOf, engine: Engine
) -> None:
    from datetime import datetime, timedelta, timezone

    first = golden_stores.expected_rows("basic-4.9.4")[0]["store_timestamp"]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Shanghai")
    try:
        frame = read_store(spark, golden_store("basic-4.9.4"), None, columns=["store_timestamp"], engine=engine)
        low = frame.selectExpr("min(store_timestamp) t").selectExpr(
            "unix_millis(t)", "date_format(t, 'yyyy-MM-dd HH:mm:ss.SSS')"
        )
        (row,) = low.collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    local = datetime.fromtimestamp(first / 1000, timezone(timedelta(hours=8)))
    assert tuple(row) == (first, local.isoformat(sep=" ", timespec="milliseconds")[:23])


def test_a_worker_gets_nothing_imported_but_pyarrow_and_this_package(spark: SparkSession, golden_store: PathOf) -> None:
    """Beyond what Spark's worker itself has imported before it calls a function."""
    from collections.abc import Iterator

    from rmqfast.spark.partitions import StoreRead, plan_partitions

    read = StoreRead(path=str(golden_store("basic-4.9.4")), request=rmqfast.ScanRequest(topic="fx_q1"))
    partitions = plan_partitions(read)

    def imported(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        before = {name.partition(".")[0] for name in sys.modules}
        from rmqfast.spark.task import read_partition

        rows = sum(batch.num_rows for part in partitions for batch in read_partition(read, part))
        after = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([f"{rows} {sorted(after - before - {'rmqfast'})}"])], ["said"])

    assert spark.range(1).mapInArrow(imported, "said string").first() == ("1259 []",)
