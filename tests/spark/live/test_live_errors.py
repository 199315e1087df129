"""What a user of a live cluster reads when something is not there: from `load()` and `read_topic`, in the driver."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import errors
from rmqfast.spark import RocketMQDataSource, read_topic
from tests.spark.in_process import source_reader
from tests.spark.live import topics
from tests.spark.live.conftest import LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_LOAD: dict[str, tuple[dict[str, str], str]] = {
    "unknown option": ({"topik": "orders"}, "unknown option topik; did you mean topic"),
    "a store's option": ({"commitLogDirs": "/data"}, "option commitLogDirs: is of a store directory; this read has"),
    "unknown topic": ({"topic": "order"}, "UnknownTopicError: unknown topic 'order' at the name server; did you mean"),
    "column": ({"columns": "bdy"}, "UnknownColumnError: unknown column 'bdy'"),
    "tags": ({"tags": "||"}, "expected tags between ||, got '||'"),
    "sql": ({"sql": "a >"}, "ExpressionError: expected a property, a value"),
    "queue": ({"queueIds": "9"}, "no queue 9; the topic's queues are 0, 1, 2, 3"),
    "group": ({"group": "a b"}, "the specified group[a b] contains illegal characters"),
    "whose offsets": ({"commitOffsets": "true"}, "option commitOffsets: needs the option group"),
    "account": ({"accessKey": "a"}, "expected access_key and secret_key, got one of them"),
    "trust": ({"tls": "true"}, "trust: expected a file of authorities, or verify=False, got None"),
    "offsets' topic": ({"startingOffsets": '{"other":{}}'}, "startingOffsets: expected one topic, 'orders', as"),
}
AT_READ: dict[str, tuple[dict[str, str], str]] = {
    "broker": (
        {"startingOffsets": '{"orders":{"broker-c":{"0":1}}}'},
        "startingOffsets: no broker broker-c; the topic's brokers are broker-a, broker-b",
    ),
    "broker's queue": (
        {"endingOffsets": '{"orders":{"broker-a":{"4":1}}}'},
        "endingOffsets: no queue 4 on broker broker-a; its queues are 0, 1, 2, 3",
    ),
    "beyond the end": (
        {"endingOffsets": '{"orders":{"broker-a":{"1":151}}}'},
        "endingOffsets: broker broker-a, queue 1: offset 151 is not there yet, the queue has 0 to 150",
    ),
    "starts beyond the end": (
        {"startingOffsets": '{"orders":{"broker-b":{"1":1000}}}'},
        "startingOffsets: broker broker-b, queue 1: offset 1000 is not there yet",
    ),
}


def given(cluster: LiveCluster, options: Mapping[str, str]) -> dict[str, str]:
    return {"nameServer": cluster.name_server, "topic": "orders", **options}


@pytest.mark.parametrize(("options", "text"), AT_LOAD.values(), ids=AT_LOAD)
def test_what_is_wrong_is_said_when_spark_asks_for_the_schema(
    live_cluster: LiveCluster, options: dict[str, str], text: str
) -> None:
    source = RocketMQDataSource(given(live_cluster, options))
    with pytest.raises(errors.RmqError) as caught:
        source.schema()
    assert text in f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize(("options", "text"), AT_READ.values(), ids=AT_READ)
def test_what_is_wrong_with_offsets_is_said_when_spark_asks_for_partitions(
    live_cluster: LiveCluster, options: dict[str, str], text: str
) -> None:
    reader = source_reader(given(live_cluster, options))
    with pytest.raises(errors.RmqError) as caught:
        reader.partitions()
    assert text in str(caught.value)


@pytest.mark.spark
def test_load_and_the_first_action_tell_what_the_source_says(spark: SparkSession, live_cluster: LiveCluster) -> None:
    reader = spark.read.format("rocketmq")
    options, text = AT_LOAD["unknown topic"]
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's own class differs by version
        reader.options(**given(live_cluster, options)).load()
    assert text in str(caught.value)
    options, text = AT_READ["beyond the end"]
    frame = reader.options(**given(live_cluster, options)).load()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        frame.count()
    assert text in str(caught.value)


@pytest.mark.spark
def test_offsets_beyond_the_ends_are_taken_for_the_ends_if_loss_is_allowed(
    spark: SparkSession, live_cluster: LiveCluster
) -> None:
    end = {"broker-a": {0: 10_000}, "broker-b": {0: 0, 1: 0, 2: 0, 3: 0}}
    arguments: dict[str, Any] = {"end_offset": end, "start_offset": {"*": {1: -1, 2: -1, 3: -1}}}
    assert read_topic(spark, live_cluster.name_server, "orders", on_damage="warn", **arguments).count() == 150
    with pytest.raises(errors.DataLossError, match=r"offset 10000 is not there yet.*\n.*failOnDataLoss=false"):
        read_topic(spark, live_cluster.name_server, "orders", **arguments)


REFUSED: dict[str, tuple[Mapping[str, Any], type[Exception], str]] = {
    "engine": ({"engine": "row"}, errors.ArgumentError, "engine: expected 'arrow', 'pandas', got 'row'"),
    "partitions": ({"min_partitions": 0}, errors.ArgumentError, "min_partitions: expected 1 to 1000000, got 0"),
    "rows": ({"max_rows_per_partition": 0}, errors.ArgumentError, "max_rows: expected 1 or more, got 0"),
    "damage": ({"on_damage": "skip"}, errors.ArgumentError, "on_damage: expected 'fail' or 'warn', got 'skip'"),
    "no column": ({"columns": []}, errors.ArgumentError, "columns: expected at least one, got none"),
    "time": ({"start_time": "noon"}, errors.ArgumentError, "time: expected ISO 8601"),
    "topic": ({"topic": "a b"}, errors.ClientError, "The specified topic[a b] contains illegal characters"),
}


@pytest.mark.spark
@pytest.mark.parametrize(("arguments", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_there_is_refused_by_the_call(
    spark: SparkSession,
    live_cluster: LiveCluster,
    arguments: Mapping[str, Any],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error) as caught:
        read_topic(spark, **{"name_server": live_cluster.name_server, "topic": "orders", **arguments})
    assert text in str(caught.value)


@pytest.mark.spark
def test_a_name_server_that_is_down_is_said_to_be_so(spark: SparkSession) -> None:
    with socket.socket() as taken:  # nobody listens there while it is
        taken.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(errors.ClientError, match=r"no name server answers: .*\nsee that one runs there"):
            read_topic(spark, nobody, "orders")


@pytest.mark.spark
def test_a_topic_that_nobody_may_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path, brokers=1, enablePropertyFilter="false") as cluster:
        topics.create(cluster, "written", perm=2)
        with pytest.raises(errors.ClientError, match=r"topic written has no queue that may be read\nits permission"):
            read_topic(spark, cluster.name_server, "written")
        topics.create(cluster, "plain")
        with pytest.raises(errors.ClientError, match=r"broker broker-a does not filter by sql.*\n.*enablePropertyFil"):
            read_topic(spark, cluster.name_server, "plain", sql="a = 1")
