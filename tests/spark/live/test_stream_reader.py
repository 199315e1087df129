"""The stream reader as PySpark has it: dicts, pickled to tasks, by old and new calls; no Spark is needed for that."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from rmqfast.spark.live.stream_reader import StreamReader, store_stream_reader, topic_stream_reader
from rmqfast.spark.schema import row_schema
from tests.client.ranges.clusters import RestartableCluster
from tests.golden_stores import PathOf
from tests.spark.in_process import column, rows_in

COUNT = 300


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableCluster]:
    """A broker with a queue of `orders`."""
    with RestartableCluster(tmp_path_factory.mktemp("stream") / "store") as started:
        started.create("orders")
        started.fill("orders", COUNT)
        yield started


def reader(cluster: RestartableCluster, **options: str) -> StreamReader:
    given = {"nameServer": cluster.name_server, "topic": "orders", "startingOffsets": "earliest"}
    return topic_stream_reader(given | options, row_schema(["queue_offset"]))


def without_times(offset: dict[str, Any]) -> dict[str, Any]:
    return {topic: {name: queues for name, queues in of.items() if queues} for topic, of in offset.items()}


def at(offset: int) -> dict[str, Any]:
    return {"orders": {"broker-a": {"0": offset}}}


def test_a_reader_goes_to_tasks_without_its_connections(cluster: RestartableCluster) -> None:
    of = reader(cluster)
    assert of.initialOffset() == at(0)
    copy = pickle.loads(pickle.dumps(of))  # noqa: S301
    (partition,) = of.partitions(at(5), at(COUNT))
    of.stop()
    assert column(rows_in(copy.read(partition)), "queue_offset") == list(range(5, COUNT))
    assert list(copy.read(None)) == []
    assert copy.initialOffset() == at(0)
    copy.stop()


def test_offsets_have_the_text_that_a_checkpoint_has(cluster: RestartableCluster) -> None:
    of = reader(cluster)
    assert of.reportLatestOffset() is None
    # PySpark stores it so
    assert json.dumps(without_times(of.latestOffset(at(7), None))) == f'{{"orders": {{"broker-a": {{"0": {COUNT}}}}}}}'
    assert of.reportLatestOffset() == at(COUNT)
    of.commit(at(COUNT))
    of.stop()


def test_pyspark_that_does_not_say_where_the_stream_is_gets_all_there_is(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    of = reader(cluster, maxOffsetsPerTrigger="10")
    assert without_times(of.latestOffset(at(7), None)) == at(17)
    assert caplog.text == ""
    assert without_times(of.latestOffset()) == at(COUNT)
    assert "maxOffsetsPerTrigger and minOffsetsPerTrigger need PySpark 4.2" in caplog.text
    of.stop()


@pytest.mark.parametrize("io", ["pread", "mmap"])
def test_the_stream_of_a_store_reads_each_record_once(
    golden_store: PathOf, io: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"storePath": str(golden_store("basic-4.9.4")), "startingOffsets": "earliest", "io": io}
    cut = {"partitionBytes": "100000", "maxBytesPerTrigger": "500000"}
    of = store_stream_reader(options | cut, row_schema(["physical_offset"]))
    start = of.initialOffset()
    assert start == {"log": 0}
    some = of.latestOffset(start, None)
    assert 0 < some["log"] <= 500_000
    assert caplog.text == ""
    end = of.latestOffset()
    assert "maxBytesPerTrigger needs PySpark 4.2" in caplog.text
    assert of.reportLatestOffset() == end
    partitions = [*of.partitions(start, some), *of.partitions(some, end)]
    assert len(partitions) > 5
    of.commit(end)
    of.stop()
    copy = pickle.loads(pickle.dumps(of))  # noqa: S301
    offsets = column(rows_in(batch for part in partitions for batch in copy.read(part)), "physical_offset")
    assert len(offsets) == 2779
    assert offsets == sorted(set(offsets))
