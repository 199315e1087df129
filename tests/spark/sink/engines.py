"""Both sinks behind one face: that of Python workers, and that of the JVM."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pytest

from rmqfast._native import SparkOptions, TopicSink, Written
from rmqfast.errors import ClientError
from rmqfast.spark.sink import send_partition

from .scene import Scene

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = {argument: name for name, argument in SparkOptions.arguments("sink")}
SENT = re.compile(r"topic of each row: (\d+) rows, (\d+) bytes in (\d+) requests(?:, (\d+) tried)?(?:, (\d+) stored)?")


class Engine(Protocol):
    """Sends rows of a partition."""

    def send(
        self, scene: Scene, topic: str | None, columns: dict[str, Any], *more: dict[str, Any], **options: Any
    ) -> Written:
        """What was sent."""

    def refused(
        self, scene: Scene, topic: str | None, columns: dict[str, Any], *more: dict[str, Any], **options: Any
    ) -> str:
        """Why they cannot be sent."""


class PythonEngine:
    """What a Python worker does; no Spark is needed for it."""

    def send(
        self, scene: Scene, topic: str | None, columns: dict[str, Any], *more: dict[str, Any], **options: Any
    ) -> Written:
        """Counts what was sent."""
        batches = [pa.record_batch(each) for each in (columns, *more)]
        return send_partition(sink(scene.name_server, topic, batches[0].schema, **options), batches)

    def refused(
        self, scene: Scene, topic: str | None, columns: dict[str, Any], *more: dict[str, Any], **options: Any
    ) -> str:
        """The error itself."""
        with pytest.raises(ClientError) as caught:
            self.send(scene, topic, columns, *more, **options)
        return str(caught.value)


class ColumnarEngine:
    """A job of one task, which logs what it has sent. Rows name their topic: the driver asks for that of an option."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def send(
        self, scene: Scene, topic: str | None, columns: dict[str, Any], *more: dict[str, Any], **options: Any
    ) -> Written:
        """Sends all rows as one partition."""
        topics = [{} if topic is None else {"topic": [topic] * len(each["body"])} for each in (columns, *more)]
        batches = [each | named for each, named in zip((columns, *more), topics, strict=True)]
        texts = {NAMES[argument]: str(value) for argument, value in options.items()}
        made = frame(self._spark, *batches).coalesce(1).write.format("rocketmq-columnar").mode("append")
        with logged(self._spark) as log:
            made.option("nameServer", scene.name_server).options(**texts).save()
        sent = SENT.search(log())
        assert sent is not None, log()
        return Written(*(int(count or 0) for count in sent.groups()))

    def refused(
        self, scene: Scene, topic: str | None, columns: dict[str, Any], *more: dict[str, Any], **options: Any
    ) -> str:
        """What Spark tells of the error, without the classes around it."""
        with pytest.raises(Exception, match="SourceException: ClientError: ") as caught:
            self.send(scene, topic, columns, *more, **options)
        return str(caught.value).split("SourceException: ClientError: ", 1)[1].split("\n\tat ", 1)[0]


@contextmanager
def logged(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """What this package logs in the JVM meanwhile."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark itself gives no other way
    log4j = jvm.org.apache.logging.log4j
    written = jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, written, "sink", True, True)
    appender.start()
    logger = log4j.LogManager.getLogger("rmqfast.spark")
    before = logger.getLevel()
    log4j.core.config.Configurator.setLevel("rmqfast.spark", log4j.Level.INFO)
    logger.addAppender(appender)
    try:
        yield written.toString
    finally:
        logger.removeAppender(appender)
        log4j.core.config.Configurator.setLevel("rmqfast.spark", before)


def sink(name_server: str, topic: str | None, schema: pa.Schema, **options: Any) -> TopicSink:
    """A sink of Arrow's rows; options are named as those of `write_topic`."""
    given = {"name_server": name_server, "topic": topic, **options}
    texts = {NAMES[argument]: str(value) for argument, value in given.items() if value is not None}
    return TopicSink(texts, [(field.name, _type(field.type)) for field in schema])


def frame(spark: SparkSession, *columns: dict[str, Any]) -> DataFrame:
    """A data frame of the rows of Arrow batches."""
    batches = [pa.record_batch(each) for each in columns]
    schema = ", ".join(f"{field.name} {_type(field.type)}" for field in batches[0].schema)
    rows = [
        tuple(dict(value) if pa.types.is_map(column.type) and value is not None else value for column, value in row)
        for batch in batches
        for row in zip(*([(column, value) for value in column.to_pylist()] for column in batch.columns), strict=True)
    ]
    return spark.createDataFrame(rows, schema)


def _type(kind: pa.DataType) -> str:
    texts: dict[str, Callable[[pa.DataType], bool]] = {
        "binary": pa.types.is_binary,
        "tinyint": pa.types.is_int8,
        "int": pa.types.is_int32,
        "bigint": pa.types.is_int64,
        "array<string>": pa.types.is_list,
        "map<string,string>": pa.types.is_map,
    }
    return next((text for text, fits in texts.items() if fits(kind)), "string")
