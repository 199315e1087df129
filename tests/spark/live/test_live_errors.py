"""What a user of a live cluster reads when something is not there: from `load()` and `read_topic`, in the driver."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import errors
from rmqfast.spark import read_topic
from tests.spark.engines import HAS_PYTHON_SOURCES, JVM, said
from tests.spark.in_process import source_reader
from tests.spark.live import topics
from tests.spark.live.test_equal_rows import topic_frame
from tests.spark.live.topics import LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from pyspark.errors import IllegalArgumentException

if HAS_PYTHON_SOURCES:
    from rmqfast.spark import RocketMQDataSource

AT_LOAD: dict[str, tuple[dict[str, str], str]] = {
    "unknown option": ({"topik": "orders"}, "unknown option topik; did you mean topic"),
    "a store's option": ({"commitLogDirs": "/data"}, "option commitLogDirs: is of a store directory; this read has"),
    "unknown topic": ({"topic": "order"}, "UnknownTopicError: unknown topic 'order' at the name server; did you mean"),
    "column": ({"columns": "bdy"}, "UnknownColumnError: unknown column 'bdy'"),
    "tags": ({"tags": "||"}, "subString split error: expected a tag beside '||'"),
    "sql": ({"sql": "a >"}, "ExpressionError: expected a property, a value"),
    "queue": ({"queueIds": "9"}, "no queue 9; the topic's queues are 0, 1, 2, 3"),
    "group": ({"group": "a b"}, "the specified group[a b] contains illegal characters"),
    "whose offsets": ({"commitOffsets": "true"}, "option commitOffsets: needs the option group"),
    "account": ({"accessKey": "a"}, "expected access_key and secret_key, got one of them"),
    "trust": ({"tls": "true"}, "trust: expected a file of authorities, or verify=False, got None"),
    "no mirror": (
        {"via": "mirror"},
        "option mirrorPath: expected the directory of rmqfast mirror with the option via=",
    ),
    "mirror of pulls": ({"mirrorPath": "/copies"}, "and only with it; got '/copies' with via=pull"),
    "copy": (
        {"via": "mirror", "mirrorPath": "/nowhere"},
        "option mirrorPath: expected a copy of broker-a below /nowhere, got none; rmqfast mirror --all-brokers makes",
    ),
    "topics in two ways": (
        {"subscribe": "bills"},
        "options topic, subscribe, subscribePattern, assign: expected one of them, got topic, subscribe",
    ),
    "offsets' topic": (
        {"startingOffsets": '{"other":{}}'},
        "startingOffsets: 'other' is not read; expected offsets of topic orders",
    ),
}
#: Other topics than those of `topic`.
OF_TOPICS: dict[str, tuple[dict[str, str], str]] = {
    "none": ({}, "options topic, subscribe, subscribePattern, assign: expected one of them, got none"),
    "unknown": (
        {"subscribe": "orders,order"},
        "UnknownTopicError: unknown topic 'order' at the name server; did you mean",
    ),
    "pattern": ({"subscribePattern": "(?!x)"}, "expected a regular expression, got '(?!x)': look-around is not"),
    "assigned": ({"assign": '{"orders":{"broker-b":[4]}}'}, "assign: topic orders: no queue 4 on broker broker-b; its"),
    "assigned twice": (
        {"assign": '{"orders":{"broker-b":[3]}}', "queueIds": "3"},
        "option queueIds: the option assign",
    ),
    "offsets": (
        {"subscribePattern": "o.*", "startingOffsets": '{"bills":{}}'},
        "startingOffsets: 'bills' is not read; expected offsets of topics like 'o.*' as",
    ),
}
AT_READ: dict[str, tuple[dict[str, str], str]] = {
    "broker": (
        {"startingOffsets": '{"orders":{"broker-c":{"0":1}}}'},
        "startingOffsets: topic orders: no broker broker-c; the topic's brokers are broker-a, broker-b",
    ),
    "broker's queue": (
        {"endingOffsets": '{"orders":{"broker-a":{"4":1}}}'},
        "endingOffsets: topic orders: no queue 4 on broker broker-a; its queues are 0, 1, 2, 3",
    ),
    "beyond the end": (
        {"endingOffsets": '{"orders":{"broker-a":{"1":151}}}'},
        "endingOffsets: topic orders, broker broker-a, queue 1: offset 151 is not there yet, the queue has 0 to 150",
    ),
    "starts beyond the end": (
        {"startingOffsets": '{"orders":{"broker-b":{"1":1000}}}'},
        "startingOffsets: topic orders, broker broker-b, queue 1: offset 1000 is not there yet",
    ),
}


def given(cluster: LiveCluster, options: Mapping[str, str]) -> dict[str, str]:
    return {"nameServer": cluster.name_server, "topic": "orders", **options}


def by_python(ask: Callable[[], object]) -> str:
    with pytest.raises(errors.RmqError) as caught:
        ask()
    return said(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize(("options", "text"), AT_LOAD.values(), ids=AT_LOAD)
def test_load_of_the_jvm_says_what_pythons_source_says(
    spark: SparkSession, live_cluster: LiveCluster, options: dict[str, str], text: str
) -> None:
    options = given(live_cluster, options)
    with pytest.raises(IllegalArgumentException) as caught:
        spark.read.format(JVM).options(**options).load()
    assert text in said(caught.value)
    if HAS_PYTHON_SOURCES:
        assert said(caught.value) == by_python(RocketMQDataSource(options).schema)


@pytest.mark.spark
@pytest.mark.parametrize(("options", "text"), OF_TOPICS.values(), ids=OF_TOPICS)
def test_load_says_what_is_wrong_with_topics(
    spark: SparkSession, engine: str, live_cluster: LiveCluster, options: dict[str, str], text: str
) -> None:
    reader = spark.read.format(engine).options(nameServer=live_cluster.name_server, **options)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's own class differs by version
        reader.load()
    assert text in said(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize(("options", "text"), AT_READ.values(), ids=AT_READ)
def test_an_action_of_the_jvm_says_what_pythons_source_says(
    spark: SparkSession, live_cluster: LiveCluster, options: dict[str, str], text: str
) -> None:
    options = given(live_cluster, options)
    frame = spark.read.format(JVM).options(**options).load()
    for action in (frame.count, frame.collect):  # the one asks queues, the other plans tasks
        with pytest.raises(IllegalArgumentException) as caught:
            action()
        assert text in said(caught.value)
        if HAS_PYTHON_SOURCES:
            assert said(caught.value) == by_python(source_reader(options).partitions)


@pytest.mark.spark
def test_load_and_the_first_action_tell_what_the_source_says(
    spark: SparkSession, engine: str, live_cluster: LiveCluster
) -> None:
    reader = spark.read.format(engine)
    options, text = AT_LOAD["unknown topic"]
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's own class differs by version
        reader.options(**given(live_cluster, options)).load()
    assert text in said(caught.value)
    options, text = AT_READ["beyond the end"]
    frame = reader.options(**given(live_cluster, options)).load()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        frame.count()
    assert text in said(caught.value)


@pytest.mark.spark
def test_offsets_beyond_the_ends_are_taken_for_the_ends_if_loss_is_allowed(
    spark: SparkSession, engine: str, live_cluster: LiveCluster
) -> None:
    end = {"broker-a": {0: 10_000}, "broker-b": {0: 0, 1: 0, 2: 0, 3: 0}}
    arguments: dict[str, Any] = {"end_offset": end, "start_offset": {"*": {1: -1, 2: -1, 3: -1}}}
    assert topic_frame(spark, engine, live_cluster.name_server, on_damage="warn", **arguments).count() == 150
    with pytest.raises(Exception, match="offset 10000 is not there yet") as caught:
        topic_frame(spark, engine, live_cluster.name_server, **arguments).count()
    assert re.match(r"DataLossError: .*offset 10000 is not there yet.*\n.*failOnDataLoss=false", said(caught.value))


REFUSED: dict[str, tuple[Mapping[str, Any], type[Exception], str]] = {
    "engine": (
        {"engine": "row"},
        errors.ArgumentError,
        "engine: expected 'auto', 'columnar', 'arrow', 'pandas', got 'row'",
    ),
    "partitions": (
        {"min_partitions": 0},
        errors.ArgumentError,
        "option minPartitions: expected a number from 1 to 1000000, got '0'",
    ),
    "rows": (
        {"max_rows_per_partition": 0},
        errors.ArgumentError,
        "option maxRowsPerPartition: expected a number from 1 to ",
    ),
    "damage": ({"on_damage": "skip"}, errors.ArgumentError, "on_damage: expected 'fail' or 'warn', got 'skip'"),
    "no column": ({"columns": []}, errors.ArgumentError, "columns: expected at least one, got none"),
    "time": ({"start_time": "noon"}, errors.ArgumentError, "start_time: expected ISO 8601"),
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
def test_a_name_server_that_is_down_is_said_to_be_so(spark: SparkSession, engine: str) -> None:
    with socket.socket() as taken:  # nobody listens there while it is
        taken.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Exception, match="no name server answers") as caught:
            topic_frame(spark, engine, nobody)
        assert re.match(r"ClientError: no name server answers: .*\nsee that one runs there", said(caught.value))


@pytest.mark.spark
def test_a_topic_that_nobody_may_read_is_refused(spark: SparkSession, engine: str, tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path, brokers=1, enablePropertyFilter="false") as cluster:
        for topic, perm, arguments, text in (
            ("written", 2, {}, "topic written has no queue that may be read\nits permission"),
            (
                "plain",
                6,
                {"sql": "a = 1"},
                r"broker broker-a does not filter by sql: CODE: .*\n.*enablePropertyFilter=true",
            ),
        ):
            topics.create(cluster, topic, perm=perm)
            with pytest.raises(Exception, match=r"has no queue|does not filter") as caught:
                topic_frame(spark, engine, cluster.name_server, topic, **arguments)
            assert re.match(f"ClientError: {text}", said(caught.value)), said(caught.value)
