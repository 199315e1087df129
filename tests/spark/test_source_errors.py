"""What a user of the data source reads when something is not there: mostly from `load()`, in the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructType, TimestampNTZType

from rmqfast._native import TopicRead
from rmqfast.errors import CorruptError, ExpressionWarning, RmqError
from rmqfast.spark import RocketMQDataSource
from tests.client.ranges.clusters import RestartableCluster
from tests.golden_stores import PathOf

from .in_process import source_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_LOAD: dict[str, tuple[dict[str, str], str]] = {
    "option": ({"topik": "fx_q1"}, "ArgumentError: unknown option topik; did you mean topic"),
    "cluster": ({"nameServer": "127.0.0.1:9876"}, "option nameServer: is a live cluster's"),
    "value": ({"failOnDataLoss": "no"}, "option failOnDataLoss: expected true or false, got 'no'"),
    "topic": ({"topic": "fx_q"}, "UnknownTopicError: unknown topic 'fx_q'; did you mean fx_q1"),
    "column": ({"columns": "bdy"}, "UnknownColumnError: unknown column 'bdy'"),
    "tags": ({"tags": "||"}, "ExpressionError: subString split error"),
    "sql": ({"sql": "a >"}, "ExpressionError: expected a property, a value"),
    "offsets": ({"startingOffsets": "latest"}, "startingOffsets and endingOffsets need the option topic"),
    "queue": ({"topic": "fx_q1", "endingOffsets": '{"fx_q1":{"*":{"7":1}}}'}, "endingOffsets: no queue 7; the topic's"),
    "store": ({"storePath": "/nowhere"}, "StoreNotFoundError: [Errno 2] no such file or directory: '/nowhere"),
}
# what a user asks for: type and whether it may be null
AT_READ: dict[str, tuple[DataType, bool, str]] = {
    "bdy": (BinaryType(), True, "unknown column 'bdy'; did you mean body? the columns are topic, broker_name"),
    "queue_id": (LongType(), True, "schema: column queue_id: expected int, got bigint"),
    "store_timestamp": (
        TimestampNTZType(),
        True,
        "schema: column store_timestamp: expected timestamp, got timestamp_ntz",
    ),
    "tags": (StringType(), False, "schema: column tags: expected nullable, as every column is, got NOT NULL"),
}


@pytest.mark.spark
@pytest.mark.parametrize(("options", "text"), AT_LOAD.values(), ids=AT_LOAD)
def test_what_is_wrong_with_an_option_is_said_by_the_source_and_by_load(
    spark: SparkSession, golden_store: PathOf, options: dict[str, str], text: str
) -> None:
    with pytest.raises(RmqError) as caught:
        RocketMQDataSource({"storePath": str(golden_store("basic-4.9.4")), **options})
    assert text in f"{type(caught.value).__name__}: {caught.value}"
    # each load of `rocketmq` starts a worker: it is enough to see once that what the source says comes through
    for source in ("rocketmq", "rocketmq-columnar") if "topik" in options else ("rocketmq-columnar",):
        reader = spark.read.format(source).option("storePath", str(golden_store("basic-4.9.4"))).options(**options)
        assert text in refused(reader.load)


@pytest.mark.parametrize(("name", "kind", "nullable", "text"), [(n, *rest) for n, rest in AT_READ.items()])
def test_a_schema_that_the_row_has_not_is_refused_by_the_source_itself(
    golden_store: PathOf, name: str, kind: DataType, nullable: bool, text: str
) -> None:
    source = RocketMQDataSource({"storePath": str(golden_store("basic-4.9.4"))})
    with pytest.raises(RmqError) as caught:
        source.reader(StructType().add(name, kind, nullable))
    assert text in str(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize("source", ["rocketmq", "rocketmq-columnar"])
def test_a_schema_that_the_row_has_not_is_refused(spark: SparkSession, golden_store: PathOf, source: str) -> None:
    reader = spark.read.format(source).schema("bdy binary")
    assert AT_READ["bdy"][-1] in refused(lambda: reader.load(str(golden_store("basic-4.9.4"))).collect())


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's own class differs by version
        call()
    return str(caught.value)


def test_damage_ends_a_read_and_says_where(golden_store: PathOf) -> None:
    with pytest.raises(CorruptError, match="00001048576 at offset 1508364, 24117 bytes"):
        source_rows({"path": str(golden_store("damaged-4.9.4"))})


def test_an_offset_that_has_expired_is_data_loss(golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    (path / "commitlog" / "00000000000000000000").unlink()
    options = {"path": str(path), "topic": "fx_q1", "startingOffsets": '{"fx_q1":{"*":{"0":3}}}'}
    with pytest.raises(CorruptError, match="startingOffsets: queue 0: offset 3 has expired"):
        source_rows(options)
    assert 0 < len(source_rows(options | {"failOnDataLoss": "false"})) < 1259


def test_sql_that_names_a_column_of_a_store_is_warned_of(golden_store: PathOf) -> None:
    with pytest.warns(ExpressionWarning, match="queue_offset is a column, and SQL sees properties alone"):
        RocketMQDataSource({"storePath": str(golden_store("basic-4.9.4")), "sql": "queue_offset > 5"})


def test_sql_that_names_a_column_of_topics_is_warned_of_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with RestartableCluster(tmp_path / "store", enablePropertyFilter="true") as cluster:
        cluster.create("orders")
        options = {"nameServer": cluster.name_server, "topic": "orders"}
        for sql in ("a > 5", "queue_offset > 5"):
            TopicRead("topic batch", options | {"sql": sql}, ["body"]).check()
    assert caplog.text.count("sql: queue_offset is a column, and SQL sees properties alone") == 1
