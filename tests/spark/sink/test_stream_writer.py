"""`df.writeStream` with both data sources: after a restart the checkpoint knows what is left to send."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import until

from .scene import Scene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(600)]

COLUMNS = ("value AS body", "concat('t', value) AS tags", "map('n', value) AS properties", "array('k', value) AS keys")


class Stream:
    """A stream of text files to a topic; each line is a row."""

    def __init__(self, spark: SparkSession, source: str, scene: Scene, directory: Path) -> None:
        self._spark, self._source, self._scene = spark, source, scene
        self._files, self._checkpoint = directory / "files", directory / "checkpoint"
        self._files.mkdir()
        self.topic = scene.topic()

    def add(self, name: str, numbers: range) -> None:
        """A file, at once."""
        made = self._files.parent / f"{name}.tmp"
        made.write_text("".join(f"{number}\n" for number in numbers))
        made.rename(self._files / f"{name}.txt")

    def start(self, *, once: bool = True, columns: tuple[str, ...] = COLUMNS, **options: Any) -> StreamingQuery:
        """Starts the query; the checkpoint says where it goes on."""
        frame = self._spark.readStream.option("maxFilesPerTrigger", 1).text(str(self._files)).selectExpr(*columns)
        made = frame.writeStream.format(self._source).option("nameServer", self._scene.name_server)
        made = made.option("topic", self.topic).option("checkpointLocation", str(self._checkpoint))
        made = made.options(**{name: str(value) for name, value in options.items()})
        return (made.trigger(availableNow=True) if once else made.trigger(processingTime="100 milliseconds")).start()

    def bodies(self) -> list[int]:
        """What is stored."""
        return [int(row["body"]) for row in self._scene.stored(self.topic)]


@pytest.fixture
def stream(spark: SparkSession, source: str, own_scene: Scene, tmp_path: Path) -> Iterator[Stream]:
    made = Stream(spark, source, own_scene, tmp_path)
    yield made
    for query in spark.streams.active:
        query.stop()


def test_a_stream_goes_on_where_its_checkpoint_says(stream: Stream, own_scene: Scene) -> None:
    stream.add("a", range(100))
    stream.add("b", range(100, 200))
    assert stream.start().awaitTermination(120)
    assert sorted(stream.bodies()) == list(range(200))
    stream.add("c", range(200, 300))
    assert stream.start().awaitTermination(120)
    assert sorted(stream.bodies()) == list(range(300))
    rows = own_scene.stored(stream.topic)
    for row in rows:
        text = row["body"].decode()
        assert (row["tags"], row["keys"], row["properties"]["n"]) == (f"t{text}", f"k {text}", text)


def test_a_stream_whose_cluster_was_restarted_misses_no_row(stream: Stream, own_scene: Scene) -> None:
    query = stream.start(once=False)
    for number in range(10):
        stream.add(f"f{number}", range(100 * number, 100 * number + 100))
        if number == 4:
            until(stream.bodies, patience=300)
            own_scene.stop()
    # the query meets a cluster that is down, or one that is back: either is right
    restart = threading.Timer(2.0, own_scene.start)
    restart.start()
    restart.join()
    query.processAllAvailable()
    assert set(stream.bodies()) == set(range(1000))
    query.stop()
    assert query.exception() is None


def test_a_stream_whose_query_failed_goes_on_after_it_was_mended(
    stream: Stream, own_scene: Scene, spark: SparkSession
) -> None:
    """A micro-batch that failed comes again as a whole: its rows are there at least once."""
    stream.add("a", range(100))
    assert stream.start().awaitTermination(120)
    stream.add("b", range(100, 200))
    wrong = ("CASE WHEN value = '150' THEN '' ELSE value END AS body",)
    query = stream.start(columns=wrong)
    with pytest.raises(Exception, match=rf"row 50 \{{topic: '{stream.topic}', body: 0 bytes b''\}}"):
        query.awaitTermination(120)
    assert stream.start(columns=COLUMNS[:1]).awaitTermination(120)
    assert set(stream.bodies()) == set(range(200))
    assert sorted(stream.bodies())[:100] == list(range(100))
