"""What a user of the data source reads when something is not there: mostly from `load()`, in the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Store = Callable[[str], Path]
SOURCES = ("rocketmq", "rocketmq-columnar")
AT_LOAD = {
    "option": ({"topik": "fx_q1"}, "ArgumentError: unknown option topik; did you mean topic"),
    "cluster": ({"nameServer": "127.0.0.1:9876"}, "option nameServer: is a live cluster's"),
    "value": ({"failOnDataLoss": "no"}, "option failOnDataLoss: expected true or false, got 'no'"),
    "topic": ({"topic": "fx_q"}, "UnknownTopicError: unknown topic 'fx_q'; did you mean fx_q1"),
    "column": ({"columns": "bdy"}, "UnknownColumnError: unknown column 'bdy'"),
    "tags": ({"tags": "||"}, "ExpressionError: expected a tag"),
    "sql": ({"sql": "a >"}, "ExpressionError: expected a property, a value"),
    "offsets": ({"startingOffsets": "latest"}, "startingOffsets and endingOffsets need the option topic"),
    "queue": ({"topic": "fx_q1", "endingOffsets": '{"fx_q1":{"*":{"7":1}}}'}, "endingOffsets: no queue 7; the topic's"),
    "store": ({"storePath": "/nowhere"}, "StoreNotFoundError: [Errno 2] no such file or directory: '/nowhere"),
}
AT_READ = {
    "bdy binary": "unknown column 'bdy'; did you mean body? the columns are topic, broker_name",
    "queue_id bigint": "schema: column queue_id: expected int, got bigint",
    "store_timestamp timestamp_ntz": "schema: column store_timestamp: expected timestamp, got timestamp_ntz",
    "tags string NOT NULL": "schema: column tags: expected nullable, as every column is, got NOT NULL",
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("options", "text"), AT_LOAD.values(), ids=AT_LOAD)
def test_what_is_wrong_with_an_option_is_said_by_load(
    spark: SparkSession, golden_store: Store, source: str, options: dict[str, str], text: str
) -> None:
    reader = spark.read.format(source).option("storePath", str(golden_store("basic-4.9.4"))).options(**options)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's own class differs by version
        reader.load()
    assert text in str(caught.value)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("schema", "text"), AT_READ.items(), ids=list(AT_READ))
def test_a_schema_that_the_row_has_not_is_refused(
    spark: SparkSession, golden_store: Store, source: str, schema: str, text: str
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        spark.read.format(source).schema(schema).load(str(golden_store("basic-4.9.4"))).collect()
    assert text in str(caught.value)


def test_damage_ends_the_job_and_says_where(spark: SparkSession, golden_store: Store) -> None:
    frame = spark.read.format("rocketmq").load(str(golden_store("damaged-4.9.4")))
    with pytest.raises(Exception, match=r"CorruptError: store .* 1 damaged places: .*00001048576 at offset 1508364"):
        frame.count()


def test_an_offset_that_has_expired_is_data_loss(spark: SparkSession, golden_store_copy: Store) -> None:
    path = golden_store_copy("basic-4.9.4")
    (path / "commitlog" / "00000000000000000000").unlink()
    reader = spark.read.format("rocketmq").option("topic", "fx_q1").option("startingOffsets", '{"fx_q1":{"*":{"0":3}}}')
    with pytest.raises(Exception, match="startingOffsets: queue 0: offset 3 has expired, the queue begins at"):
        reader.load(str(path))
    assert 0 < reader.option("failOnDataLoss", "false").load(str(path)).count() < 1259
