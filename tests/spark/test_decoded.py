"""Bodies decoded by the data source `rocketmq-columnar`: the values of a scan, and of Spark's own `from_json`."""

from __future__ import annotations

import base64
import json
import random
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import errors
from rmqfast.store import open_store
from tests.reference.avro import encode
from tests.store.avro_bodies import ORDER, VALUE
from tests.store.bodies import GOOD, HOSTILE, SCHEMA, store_of

from .conftest import plan
from .engines import said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
#: Every type that DDL has, alone, in lists and maps, and two levels deep; but bytes, which Spark reads as base64.
ALL_TYPES = (
    "`odd name` boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal(10,2), i decimal(30,5), "
    "j string, k date, l timestamp, m timestamp_ntz, "
    "n array<int>, o array<struct<p: string, q: array<double>>>, r map<string, bigint>, "
    "s map<string, struct<t: decimal(4,1), u: boolean>>, v struct<w: struct<x: date, y: array<timestamp>>, z: string>"
)
AVRO = ORDER | {
    "fields": [
        *ORDER["fields"],
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 3}},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}},
    ]
}
AVRO_VALUE = VALUE | {"at": 1_500_000_000_001, "hash": b"\x00\x01\xff", "total": (-123).to_bytes(2, signed=True)}


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("rocketmq-columnar").options(storePath=str(path), topic="T", **options).load()


def values(frame: DataFrame) -> list[Any]:
    """Values as Python's own types, in the order of the log."""
    rows = frame.select("physical_offset", "value").orderBy("physical_offset").collect()
    return [None if row.value is None else row.value.asDict(recursive=True) for row in rows]


def scanned(path: Path, **arguments: Any) -> list[Any]:
    """The values of a scan, with maps as Spark gives them."""
    with open_store(path) as store, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = store.scan("T", columns=["physical_offset", "value"], **arguments).to_arrow()
        return [with_maps(value) for value in table.sort_by("physical_offset").column("value").to_pylist()]


def with_maps(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: with_maps(each) for name, each in value.items()}
    if isinstance(value, list):
        items = [with_maps(each) for each in value]
        return dict(items) if items and all(isinstance(each, tuple) for each in items) else items
    return tuple(map(with_maps, value)) if isinstance(value, tuple) else value


def document(random_: random.Random) -> dict[str, Any]:
    """A body that both decoders read alike, with fields that are missing or null."""

    def some(least: int, make: Any) -> list[Any]:
        return [make() for _ in range(random_.randint(least, 3))]

    def day() -> str:
        return f"{random_.randint(1970, 2100)}-{random_.randint(1, 12):02}-{random_.randint(1, 28):02}"

    def whole(bits: int) -> int:
        return random_.randint(-(1 << bits), (1 << bits) - 1)

    def text() -> str:
        return "".join(random_.choice('abé\n"\\🚀 ') for _ in range(random_.randint(0, 6)))

    def time() -> str:
        return f"{day()}T12:34:56.{random_.randint(0, 999_999):06}"

    def inner() -> dict[str, Any]:
        return {"x": day(), "y": some(0, lambda: f"{time()}Z")}

    whole_document: dict[str, Any] = {
        "odd name": random_.random() < 0.5,
        "b": whole(7),
        "c": whole(15),
        "d": whole(31),
        "e": whole(63),
        "f": random_.randint(-1000, 1000) / 8,
        "g": random_.uniform(-1e9, 1e9),
        "h": whole(20) / 100,
        "i": whole(40) / 32,
        "j": text(),
        "k": day(),
        "l": f"{time()}+02:00",
        "m": time(),
        "n": some(0, lambda: random_.choice([None, whole(31)])),
        "o": some(0, lambda: {"p": text(), "q": some(1, random_.random)}),
        # no empty map, which has no pairs to tell it from a list
        "r": {f"k{n}": whole(63) for n in range(random_.randint(1, 3))},
        "s": {f"k{n}": {"t": whole(9) / 10, "u": None} for n in range(random_.randint(1, 3))},
        "v": {"w": random_.choice([None, inner()]), "z": text()},
        "unknown": [{"a": [1, {}]}],
    }
    return {name: value for name, value in whole_document.items() if random_.random() < 0.9}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of documents, some of which are compressed."""
    random_ = random.Random(7)
    bodies = [json.dumps(document(random_), ensure_ascii=random_.random() < 0.5).encode() for _ in range(300)]
    path = tmp_path_factory.mktemp("documents")
    store_of(path, bodies, compression="zlib").close()
    return path


@pytest.mark.parametrize("mode", ["PERMISSIVE", "FAILFAST"])
def test_valid_bodies_have_the_values_of_from_json(spark: SparkSession, documents: Path, mode: str) -> None:
    from pyspark.sql import functions as f

    on_error = {"PERMISSIVE": "null", "FAILFAST": "fail"}[mode]
    decoded = load(spark, documents, decode="json", valueSchema=ALL_TYPES, onDecodeError=on_error)
    by_spark = f.from_json(f.col("body").cast("string"), ALL_TYPES, {"mode": mode})
    expected = values(load(spark, documents).withColumn("value", by_spark))
    assert values(decoded) == expected
    assert len(expected) == 300
    assert decoded.schema["value"].dataType == load(spark, documents).select(by_spark.alias("v")).schema["v"].dataType


def test_values_are_those_of_a_scan(spark: SparkSession, documents: Path) -> None:
    from pyspark.sql import functions as f

    decoded = load(spark, documents, decode="json", valueSchema=ALL_TYPES)
    found = values(decoded.withColumn("value", f.col("value").dropFields("l", "v")))
    expected = scanned(documents, decode="json", schema=ALL_TYPES)
    # times without their zones: Spark gives Python those of this machine
    assert found == [{name: each for name, each in value.items() if name not in {"l", "v"}} for value in expected]


def test_without_generated_code_values_are_the_same(spark: SparkSession, documents: Path) -> None:
    decoded = load(spark, documents, decode="json", valueSchema=ALL_TYPES)
    expected = values(decoded)
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        assert values(decoded) == expected
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", "true")


@pytest.mark.newest
def test_values_outlive_their_batch(spark: SparkSession, documents: Path) -> None:
    decoded = load(spark, documents, decode="json", valueSchema=ALL_TYPES, minPartitions="3")
    expected = sorted(map(repr, values(decoded)))
    cached = decoded.cache()
    try:
        for frame in (cached, decoded.repartition(3, "value.j"), decoded.orderBy("value.e")):
            assert sorted(map(repr, values(frame))) == expected
    finally:
        decoded.unpersist()


def bad_bodies(frame: DataFrame) -> int:
    """The metric of a frame that was collected."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()  # noqa: SLF001 - PySpark has no metrics
    value: int = leaves.apply(0).metrics().apply("rmqfastBadBodies").value()
    return value


def test_hostile_bodies_are_null_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    bodies = [each for bad in HOSTILE for each in (GOOD, bad, GOOD)]
    store_of(tmp_path, bodies).close()
    frame = load(spark, tmp_path, decode="json", valueSchema=SCHEMA).select("physical_offset", "value")
    rows = sorted(frame.collect())
    found = [None if row.value is None else row.value.asDict(recursive=True) for row in rows]
    assert found == scanned(tmp_path, decode="json", schema=SCHEMA)
    assert [value is None for value in found] == [body != GOOD for body in bodies]
    assert bad_bodies(frame) == len(HOSTILE)


def test_a_read_that_fails_says_which_body_and_why(spark: SparkSession, tmp_path: Path) -> None:
    store_of(tmp_path, [GOOD, b"nope", GOOD]).close()
    frame = load(spark, tmp_path, decode="json", valueSchema=SCHEMA, onDecodeError="fail")
    with pytest.raises(Exception, match="DecodeError") as caught:
        frame.select("value").collect()
    reason = "body of message 0 of queue 1 of topic T: expected a JSON object at byte 0, got 'n'"
    assert said(caught.value).startswith(f"DecodeError: {reason}")
    # the bodies themselves are not decoded for this
    assert frame.select("body").count() == 3


def test_only_the_fields_that_a_query_uses_are_decoded(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = [GOOD, b'{"id": "x", "customer": {"id": "c", "age": 3}, "lines": [{"n": 2}, {}]}']
    store_of(tmp_path, bodies).close()
    frame = load(spark, tmp_path, decode="json", valueSchema=SCHEMA)
    few = frame.selectExpr("value.customer.age", "value.lines.n")
    assert "[value: struct<customer:struct<age:int>,lines:array<struct<n:int>>>]" in plan(few, capsys)
    # the bad id is not looked at
    assert sorted(map(tuple, few.collect()), key=repr) == [(3, [2, None]), (None, [1])]
    assert values(frame)[1] is None
    assert "[topic] Pushed" in plan(frame.select("topic"), capsys)
    chosen = load(spark, tmp_path, decode="json", valueSchema=SCHEMA, columns="value.customer.age,topic")
    assert chosen.dtypes == [("value", "struct<customer:struct<age:int>>"), ("topic", "string")]
    assert sorted(chosen.selectExpr("value.customer.age", "topic").collect(), key=repr) == [(3, "T"), (None, "T")]
    in_map = load(spark, tmp_path, decode="json", valueSchema="props map<string, struct<a: int, b: int>>")
    assert "struct<props:map<string,struct<b:int>>>" in plan(in_map.selectExpr("value.props['x'].b"), capsys)


def test_filters_and_aggregates_of_fields_are_right(spark: SparkSession, tmp_path: Path) -> None:
    bodies = [b"nope", *(f'{{"queue_offset": {n}, "topic": "U"}}'.encode() for n in range(10))]
    store_of(tmp_path, bodies).close()
    frame = load(spark, tmp_path, decode="json", valueSchema="queue_offset bigint, topic string")
    assert frame.where("value.queue_offset > 6 AND value.topic = 'U'").count() == 3
    assert frame.where("value IS NULL").count() == 1
    assert frame.where("value IS NOT NULL AND queue_offset >= 0").count() == 10
    assert frame.selectExpr("max(value.queue_offset)", "count(value)", "count(*)").first() == (9, 10, 11)


def test_a_schema_of_the_users_chooses_fields(spark: SparkSession, tmp_path: Path) -> None:
    store_of(tmp_path, [GOOD]).close()
    reader = spark.read.format("rocketmq-columnar").options(
        storePath=str(tmp_path), topic="T", decode="json", valueSchema=SCHEMA
    )
    schema = "value struct<props: map<string, double>, id: bigint>, queue_id int"
    assert reader.schema(schema).load().collect() == [(({"x": 1.5}, 7), 0)]
    with pytest.raises(Exception, match=r"schema: column value.id: expected long, got integer"):
        reader.schema("value struct<id: int>").load()
    with pytest.raises(Exception, match=r"schema: column value: unknown field idd; did you mean id\?"):
        reader.schema("value struct<idd: bigint>").load()


@pytest.mark.parametrize("framing", ["confluent", "single-object"])
def test_avro_has_the_types_of_spark(spark: SparkSession, tmp_path: Path, framing: str) -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(AVRO))
    body = encode(AVRO, AVRO_VALUE)
    store_of(tmp_path / "plain", [body, b"\x01"]).close()
    plain = load(spark, tmp_path / "plain", decode="avro", valueSchema=json.dumps(AVRO))
    expected = AVRO_VALUE | {
        "at": datetime.fromtimestamp(1_500_000_000.001, tz=UTC),
        "hash": bytearray(AVRO_VALUE["hash"]),
        "total": Decimal("-1.23"),
    }
    found = values(plain)
    found[0]["at"] = found[0]["at"].astimezone(UTC)
    assert found == [expected, None]
    assert plain.selectExpr("value.state", "value.lines[1].n").first() == ("PAID", -2)
    prefix = b"\x00\x00\x00\x00\x09" if framing == "confluent" else b"\xc3\x01" + fingerprint(tmp_path)
    store_of(tmp_path / "framed", [prefix + body]).close()
    options = {"schemaId": "9"} if framing == "confluent" else {}
    framed = load(spark, tmp_path / "framed", decode="avro", valueSchema=f"file://{schema}", framing=framing, **options)
    # tasks need the file no more
    schema.unlink()
    assert framed.select("value.id").collect() == [(7,)]


def fingerprint(directory: Path) -> bytes:
    """The fingerprint that a bad body's reason names."""
    with store_of(directory / "other", [b"\xc3\x01" + bytes(8)]) as store, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scan = store.scan("T", decode="avro", schema=json.dumps(AVRO), framing="single-object")
        scan.to_arrow()
        expected = scan.decode_errors[0].reason.split("fingerprint ")[1][:16]
        return bytes.fromhex(expected)[::-1]


def test_bytes_are_those_of_a_scan(spark: SparkSession, tmp_path: Path) -> None:
    bodies = [b'{"a": "00ff"}', json.dumps({"a": base64.b64encode(b"x").decode()}).encode(), b'{"a": null}']
    store_of(tmp_path, bodies).close()
    found = values(load(spark, tmp_path, decode="json", valueSchema="a binary"))
    assert found == scanned(tmp_path, decode="json", schema="a binary")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"valueSchema": "a int"}, "option valueSchema: expected the option decode with it, got none"),
        ({"decode": "json"}, "option valueSchema: expected the schema of the bodies with the option decode"),
        ({"decode": "xml", "valueSchema": "a int"}, "option decode: expected json or avro, got 'xml'"),
        ({"decode": "json", "valueSchema": "a strng"}, "option valueSchema: expected a type (boolean"),
        ({"decode": "avro", "valueSchema": "/nowhere.avsc"}, "no such file or directory: '/nowhere.avsc'"),
        ({"decode": "avro", "valueSchema": "s3://x/a.avsc"}, "expected a schema of Avro, or a path of this machine"),
        ({"decode": "json", "valueSchema": "a int", "columns": "value.b"}, "unknown column 'b'"),
        ({"decode": "json", "valueSchema": "a int", "schemaId": "1"}, "option schemaId: expected framing='confluent'"),
        ({"columns": "value"}, "unknown column 'value'"),
    ],
)
def test_wrong_options_are_refused_at_once(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], text: str
) -> None:
    store_of(tmp_path, [GOOD]).close()
    with pytest.raises(Exception, match="Error: ") as caught:
        load(spark, tmp_path, **options).schema  # noqa: B018 - Spark resolves the source now
    assert text in said(caught.value)
    assert not issubclass(type(caught.value), errors.ExpressionError)


def test_a_stream_of_the_store_decodes(spark: SparkSession, tmp_path: Path) -> None:
    store_of(tmp_path / "store", [GOOD, b"nope", GOOD]).close()
    schema = tmp_path / "schema.ddl"
    schema.write_text(SCHEMA)
    frame = (
        spark.readStream.format("rocketmq-columnar")
        .options(storePath=str(tmp_path / "store"), decode="json", valueSchema=str(schema), startingOffsets="earliest")
        .load()
    )
    query = (
        frame.selectExpr("value.id", "value IS NULL bad", "value.lines[0].sku")
        .writeStream.format("memory")
        .queryName("decoded")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    schema.unlink()
    query.awaitTermination()
    assert sorted(map(tuple, spark.table("decoded").collect()), key=repr) == [
        (7, False, "a"),
        (7, False, "a"),
        (None, True, None),
    ]
