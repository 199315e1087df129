"""Bodies of live topics as columns: batches and streams of both data sources, and `read_topic`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message
from rmqfast.spark import read_topic
from tests.spark.engines import said
from tests.spark.live.streams import ended, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqfast.spark.reader import Engine

pytestmark = pytest.mark.spark
DDL = "id bigint, lines array<struct<sku: string, n: int>>"
COUNT = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """A broker with documents, of which each eighth is bad and each tenth is compressed."""
    with EmbeddedCluster() as started:
        with rmqfast.Producer("tests", name_server=started.name_server) as producer:
            for number in range(COUNT):
                document = {
                    "id": number,
                    "lines": [{"sku": "s", "n": number}],
                    "pad": "x" * (9000 if number % 10 else 1),
                }
                body = json.dumps(document).encode()
                producer.send(Message("documents", body[:-1] if number % 8 == 7 else body))
        yield started


def ids(frame: DataFrame) -> list[tuple[int | None, int | None]]:
    found = frame.selectExpr("value.id", "value.lines[0].n").collect()
    return sorted(map(tuple, found), key=repr)


EXPECTED = sorted(((None, None) if n % 8 == 7 else (n, n) for n in range(COUNT)), key=repr)


def test_a_batch_decodes(spark: SparkSession, engine: str, cluster: EmbeddedCluster) -> None:
    options = {"nameServer": cluster.name_server, "topic": "documents", "decode": "json", "valueSchema": DDL}
    frame = spark.read.format(engine).options(**options).load()
    assert ids(frame) == EXPECTED
    assert frame.select("body").where("value IS NULL").count() == COUNT // 8
    failing = spark.read.format(engine).options(**options, onDecodeError="fail").load()
    with pytest.raises(Exception, match="DecodeError") as caught:
        failing.select("value").collect()
    assert said(caught.value).startswith("DecodeError: body of message ")


def test_a_stream_decodes(spark: SparkSession, engine: str, cluster: EmbeddedCluster, tmp_path: Path) -> None:
    frame = stream(spark, engine, cluster.name_server, "documents", decode="json", valueSchema=DDL)
    writer = frame.select("value").writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "at"))
    ended(writer.trigger(availableNow=True).start(str(tmp_path / "out")))
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == EXPECTED


@pytest.mark.parametrize("by", ["columnar", "arrow"])
def test_a_read_of_a_topic_has_the_arguments_of_a_scan(
    spark: SparkSession, cluster: EmbeddedCluster, by: Engine
) -> None:
    columns = ["value.lines", "queue_offset", "value.id"]
    frame = read_topic(spark, cluster.name_server, "documents", decode="json", schema=DDL, columns=columns, engine=by)
    assert frame.dtypes[0] == ("value", "struct<id:bigint,lines:array<struct<sku:string,n:int>>>")
    assert frame.columns == ["value", "queue_offset"]
    assert ids(frame) == EXPECTED
