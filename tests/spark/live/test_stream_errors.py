"""What a stream cannot do is refused when its reader is made, and the checkpoint of another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqfast.errors import ArgumentError
from rmqfast.spark.live.stream_reader import store_stream_reader, topic_stream_reader
from rmqfast.spark.schema import row_schema
from tests.spark.engines import JVM, said
from tests.spark.live.streams import failure, stream, write
from tests.spark.live.topics import LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIVE = {"nameServer": "127.0.0.1:1", "topic": "orders"}
STORE = {"storePath": "/data/store", "topic": "orders"}


OF_TOPIC = [
    ({"endingOffsets": "earliest"}, "option endingOffsets: a stream has no end"),
    ({"endingTimestamp": "2030-01-01"}, "option endingTimestamp: a stream has no end"),
    ({"pushdown": "true"}, "option pushdown: Spark pushes no filters to a stream"),
]


@pytest.mark.parametrize(("options", "text"), OF_TOPIC)
def test_what_the_stream_of_a_topic_cannot_do_is_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        topic_stream_reader(LIVE | options, row_schema())


@pytest.mark.spark
@pytest.mark.parametrize(("options", "text"), OF_TOPIC)
def test_the_jvm_refuses_the_same_in_the_same_words(
    spark: SparkSession, live_cluster: LiveCluster, tmp_path: Path, options: dict[str, str], text: str
) -> None:
    query = write(stream(spark, JVM, live_cluster.name_server, **options), tmp_path)
    assert text in failure(query)
    with pytest.raises(ArgumentError) as caught:
        topic_stream_reader(LIVE | options, row_schema())
    assert said(caught.value) in failure(query)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"endingTimestamp": "2030-01-01"}, "option endingTimestamp: a stream has no end"),
        ({"startingOffsets": '{"orders":{"*":{"0":3}}}'}, "begins at earliest, latest or starting"),
    ],
)
def test_what_the_stream_of_a_store_cannot_do_is_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        store_stream_reader(STORE | options, row_schema())


def test_the_checkpoint_of_another_kind_of_stream_is_refused() -> None:
    """What a stream of a topic makes of others is in `test_stream_offsets.py`."""
    stream = store_stream_reader(STORE, row_schema())
    with pytest.raises(ArgumentError, match=r"checkpoint: expected .*'orders'.*checkpointLocation of its own"):
        stream.partitions({"orders": {"broker-a": {"0": 7}}}, {"log": 7})
