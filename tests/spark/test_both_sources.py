"""Each text of each option means the same to `rocketmq` and to `rocketmq-columnar`, in words and in what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqfast import Message, open_store
from rmqfast._native import SparkOptions
from rmqfast.errors import RmqError
from rmqfast.spark import RocketMQDataSource
from tests.spark.in_process import source_reader
from tests.spark.test_requests import golden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Texts that the two once read differently: underscores, ISO 8601's other forms, white space, what has no limit.
DRIFTED = [
    {"minPartitions": "1_0"},
    {"startingTimestamp": "2024-W01-1"},
    {"endingTimestamp": "20240101T000000"},
    {"queueIds": "4294967296"},
    {"maxBytesPerTrigger": "\x1f7"},
    {"partitionBytes": "\u00a07"},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queue 0 of `orders`, of 20 messages."""
    path = tmp_path_factory.mktemp("both") / "store"
    with open_store(path, mode="a") as appender:
        for number in range(20):
            appender.append(Message("orders", b"%d" % number, tags="AB"[number % 2]))
    return path


#: Errors that only the queues as they are can tell; and the one that names an option or its alias, by their order.
UNLIKE = re.compile(r"^(starting|ending)Offsets: (no topic|topic )|given twice")


def texts_of(option: str) -> list[dict[str, str]]:
    """The golden requests that have this option beside the store and its topic, and those that once drifted."""
    _, rows = golden()
    texts = [row["options"] for row in rows if row["kind"] == "store batch"]
    base = {"storepath", "topic"}
    return [
        options
        for options in (*texts, *({"storePath": "", "topic": "orders", **drifted} for drifted in DRIFTED))
        if {name.lower() for name in options} - base == {option.lower()} - base and "storePath" in options
    ]


def refused_of(option: str) -> list[dict[str, str]]:
    """The golden requests of topics that have this option and are refused before anybody is asked."""
    _, rows = golden()
    refused = [row for row in rows if row["kind"] == "topic batch" and "error" in row]
    texts = [row["options"] for row in refused if not UNLIKE.search(row["error"][1])]
    return [options for options in texts if option.lower() in {name.lower() for name in options}]


def by_columnar(spark: SparkSession, options: Mapping[str, str]) -> str:
    """What the JVM's source makes of options: its error, or nothing."""
    try:
        frame = spark.read.format("rocketmq-columnar").options(**options).load()
        frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - asks the source, and runs no task
    except Exception as error:  # noqa: BLE001 - Spark wraps what a source throws in many ways
        return str(error)
    return ""


def by_python(options: Mapping[str, str]) -> str:
    """What PySpark's source makes of them."""
    try:
        source_reader(options)
    except RmqError as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.spark
@pytest.mark.parametrize(
    "option", [name for name in SparkOptions.names("store batch") if name not in {"storePath", "path"}]
)
def test_both_sources_take_and_refuse_the_same_texts(spark: SparkSession, store: Path, option: str) -> None:
    requests = texts_of(option)
    assert requests
    for request in requests:
        options = {**request, "storePath": str(store)}
        refused, columnar = by_python(options), by_columnar(spark, options)
        if request.get("io") == "mmap":  # another process that cuts a mapped file off would end the whole JVM
            refused = "ArgumentError: option io: expected pread"
        assert bool(refused) == bool(columnar), (request, refused, columnar)
        assert refused in columnar, request


@pytest.mark.spark
@pytest.mark.parametrize(
    "option",
    [name for name in SparkOptions.names("topic batch") if name not in {"nameServer", "topic"} and refused_of(name)],
)
def test_both_sources_refuse_the_same_texts_of_topics(spark: SparkSession, option: str) -> None:
    for options in refused_of(option):
        with pytest.raises(RmqError) as caught:
            RocketMQDataSource(dict(options)).schema()
        refused = f"{type(caught.value).__name__}: {caught.value}"
        assert refused in by_columnar(spark, options), options
