"""Streams into Parquet, and what stands there: each message once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Place = tuple[str, int, int]


def stream(spark: SparkSession, engine: str, name_server: str, topic: str = "orders", **options: str) -> DataFrame:
    """A stream of a topic from its beginning, by one of `engines`."""
    given = {"nameServer": name_server, "topic": topic, "startingOffsets": "earliest"} | options
    return spark.readStream.format(engine).options(**given).load()


def write(frame: DataFrame, directory: Path, **trigger: Any) -> StreamingQuery:
    """Starts a query into Parquet below a directory, with its checkpoint; it goes on where it was."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(directory / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start(str(directory / "out"))


def ended(query: StreamingQuery, seconds: float = 120) -> StreamingQuery:
    """Waits for the end of a query."""
    assert query.awaitTermination(int(seconds)), query.status
    return query


def failure(query: StreamingQuery) -> str:
    """What ends a query."""
    until(lambda: not query.isActive)
    error = query.exception()
    assert error is not None
    return str(error)


def places(spark: SparkSession, directory: Path) -> Counter[Place]:
    """How often each message stands in the output."""
    rows = spark.read.parquet(str(directory / "out")).select("broker_name", "queue_id", "queue_offset").collect()
    return Counter((row[0], row[1], row[2]) for row in rows)


def each_once(ends: dict[tuple[str, int], int]) -> Counter[Place]:
    """Each message once of queues that end there."""
    return Counter((*queue, offset) for queue, end in ends.items() for offset in range(end))
