"""Bodies decoded by each engine of `read_store`, by `map_store` and by the data source `rocketmq`, as by a scan."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqfast.errors import ArgumentError, DecodeError
from rmqfast.spark import map_store, read_store
from rmqfast.spark.ingest import ingest
from rmqfast.spark.reader import store_read
from tests.reference.avro import encode
from tests.store.bodies import GOOD, HOSTILE, SCHEMA, store_of

from .engines import python_source, said
from .in_process import partition_rows
from .test_decoded import AVRO, AVRO_VALUE, load, scanned, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqfast.spark.reader import Engine

ENGINES: tuple[Engine, ...] = ("columnar", "arrow", "pandas")
BODIES = [each for bad in HOSTILE for each in (GOOD, bad)]
FIELDS = ["value.lines", "physical_offset", "value.customer.id"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    store_of(directory, BODIES).close()
    return directory


@pytest.mark.spark
@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_has_the_values_of_a_scan(spark: SparkSession, path: Path, engine: Engine) -> None:
    arguments: Any = {"decode": "json", "schema": SCHEMA, "engine": engine}
    frame = read_store(spark, path, "T", columns=["value", "physical_offset"], **arguments)
    assert frame.columns == ["value", "physical_offset"]
    assert values(frame) == scanned(path, decode="json", schema=SCHEMA)
    few = read_store(spark, path, "T", columns=FIELDS, start_offset=0, **arguments)
    kind = "struct<customer:struct<id:string>,lines:array<struct<sku:string,n:int>>>"
    assert few.dtypes == [("value", kind), ("physical_offset", "bigint")]
    found = values(few)
    assert found[0] == {"customer": {"id": "c"}, "lines": [{"sku": "a", "n": 1}]}
    assert sum(value is None for value in found) < len(HOSTILE)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["columnar", "arrow"])
def test_each_engine_fails_at_a_bad_body(spark: SparkSession, path: Path, engine: Engine) -> None:
    frame = read_store(spark, path, "T", engine=engine, decode="json", schema=SCHEMA, on_error="fail")
    with pytest.raises(Exception, match="DecodeError") as caught:
        frame.select("value").collect()
    assert said(caught.value).startswith("DecodeError: body of message 0 of queue 1 of topic T: expected a JSON object")


@pytest.mark.spark
def test_a_function_gets_values(spark: SparkSession, path: Path) -> None:
    def ids(batches: Any) -> Any:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": pa.array(batch.column("value").field("id"), pa.int64())})

    mapped = map_store(spark, path, "T", ids, "id bigint", columns=["value.id"], decode="json", value_schema=SCHEMA)
    assert mapped.groupBy().sum().first() == (7 * len(HOSTILE),)


@pytest.mark.spark
def test_an_ingest_counts_bad_bodies(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = ingest(spark, path, ["T"], out, decode="json", schema=SCHEMA, engine="columnar")
    assert (report.rows, report.bad_bodies) == (len(BODIES), len(HOSTILE))
    rows = spark.read.parquet(str(out)).selectExpr("physical_offset", "value")
    assert values(rows) == scanned(path, decode="json", schema=SCHEMA)
    with pytest.raises(DecodeError, match="body of message 0 of queue 1 of topic T"):
        ingest(spark, path, ["T"], tmp_path / "none", decode="json", schema=SCHEMA, on_error="fail")


@pytest.mark.spark
@python_source
def test_the_source_in_python_has_the_values_of_the_jvm(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.ddl"
    schema.write_text(SCHEMA)
    options = {"storePath": str(path), "topic": "T", "decode": "json", "valueSchema": str(schema)}
    reader = spark.read.format("rocketmq").options(**options)
    assert reader.load().schema == load(spark, path, decode="json", valueSchema=SCHEMA).schema
    assert values(reader.load()) == scanned(path, decode="json", schema=SCHEMA)
    few = reader.schema("value struct<id: bigint, customer: struct<age: int>>, queue_id int").load()
    assert few.where("value.id = 7").first() == ((7, (None,)), 0)
    with pytest.raises(Exception, match="expected its fields in the order of the option valueSchema"):
        reader.schema("value struct<props: map<string, double>, id: bigint>").load().collect()
    chosen = spark.read.format("rocketmq").options(**options, columns="topic,value.id").load()
    assert chosen.dtypes == [("topic", "string"), ("value", "struct<id:bigint>")]
    assert chosen.where("value.id = 7").count() == len(HOSTILE)


@pytest.mark.spark
@python_source
def test_a_stream_of_the_source_in_python_decodes(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    options = {"storePath": str(path), "decode": "json", "valueSchema": SCHEMA, "startingOffsets": "earliest"}
    frame: DataFrame = spark.readStream.format("rocketmq").options(**options).load()
    query = (
        frame.selectExpr("value.id", "value IS NULL bad")
        .writeStream.format("memory")
        .queryName("decoded_in_python")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.table("decoded_in_python").groupBy("id", "bad").count().collect()
    assert sorted(map(tuple, found), key=repr) == [(7, False, len(HOSTILE)), (None, True, len(HOSTILE))]


def test_a_task_logs_how_many_bodies_are_bad(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    arguments: Any = {"decode": "json", "schema": SCHEMA, "columns": ["value"]}
    with caplog.at_level(logging.WARNING, "rmqfast.spark"):
        rows = partition_rows(store_read(path, "T", **arguments))
    assert len(rows) == len(BODIES)
    place = f"{len(HOSTILE)} bodies could not be decoded, the first that of message 0 of queue 1 of topic T: "
    assert [place in record.message for record in caplog.records] == [True]
    with pytest.raises(DecodeError, match="body of message 0 of queue 1 of topic T"):
        partition_rows(store_read(path, "T", on_error="fail", **arguments))


def test_a_task_has_the_types_of_spark(tmp_path: Path) -> None:
    store_of(tmp_path, [encode(AVRO, AVRO_VALUE)]).close()
    columns = ["value.state", "value.at", "value.hash", "value.lines.n"]
    read = store_read(tmp_path, "T", decode="avro", schema=json.dumps(AVRO), columns=columns)
    (row,) = partition_rows(read)
    value = row["value"]
    assert (value["state"], value["hash"], value["lines"]) == ("PAID", AVRO_VALUE["hash"], [{"n": 1}, {"n": -2}])
    assert value["at"].timestamp() == 1_500_000_000.001


def test_an_arrow_schema_becomes_ddl(tmp_path: Path) -> None:
    store_of(tmp_path, [GOOD]).close()
    schema = pa.schema([("id", pa.int64()), ("props", pa.map_(pa.string(), pa.float64()))])
    read = store_read(tmp_path, "T", decode="json", schema=schema, columns=["value"])
    assert read.request.schema == "id bigint, props map<string, double>"
    with pytest.raises(ArgumentError, match="types that DDL has"):
        store_read(tmp_path, "T", decode="json", schema=pa.schema([("id", pa.uint8())]))
