"""Spark jobs that read the same messages by every route, in one session; run as a program, it is the peer's child.

Every job asks for sum(length(body)) and the rows, so that a route that loses or repeats a message is found out.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

import arrow_rows
import data
import plain_reader
from data import CHUNK, TAG, TOPIC, Dataset
from documents import DDL, QUERIES
from peer import Answer, Missing, serve

HERE = Path(__file__).resolve().parent
TUNED = {
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.poll.records": "5000",
    "kafka.receive.buffer.bytes": str(4 << 20),
}
Engine = Literal["arrow", "pandas", "columnar"]
TASKS = 4
BATCH_BYTES = 1 << 20


def session(jars: str, master: str = "local[2]", memory: str = "3g") -> SparkSession:
    """A session, on two local threads unless told otherwise; rmqfast sets up what it needs, if it is there."""
    builder: Any = SparkSession.builder.master(master).appName("rmqfast benches")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(data.scratch_dir() / "spark"),
        "spark.sql.warehouse.dir": str(data.scratch_dir() / "spark" / "warehouse"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    if jars:
        # in local mode the driver runs the tasks; spark.jars stays free for the jar that rmqfast may name
        builder = builder.config("spark.driver.extraClassPath", jars)
    try:
        from rmqfast.spark import configure
    except ImportError:
        configured = builder
    else:
        configured = configure(builder)
    spark: SparkSession = configured.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def summed(made: Callable[[], DataFrame], column: str = "body") -> Answer:
    """Seconds of planning and running sum(length(column)) over a frame."""
    begin = time.perf_counter()
    row = made().selectExpr(f"coalesce(sum(length({column})), 0) AS bytes", "count(1) AS rows").first()
    assert row is not None
    return {"seconds": time.perf_counter() - begin, "rows": row["rows"], "bytes": row["bytes"]}


class Jobs:
    """The jobs of one session, each a handler of requests."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def kafka(self, bootstrap: str, topic: str, mode: str) -> Answer:
        """Spark's Kafka source: `default`, `tuned`, or `key`, a filter on the key."""
        options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **(TUNED if mode == "tuned" else {})}

        def read() -> DataFrame:
            frame = self.spark.read.format("kafka").options(**options).load()
            return frame.where(f"CAST(key AS STRING) LIKE '{TAG}-%'") if mode == "key" else frame

        return summed(read, "value")

    def ready(self, body: str, rows: str) -> Answer:
        """The ceiling: mapInArrow yielding one ready batch with every column again and again."""
        return self._yielded(Dataset("ready", int(body), int(rows)), list(arrow_rows.COLUMNS))

    def ready_narrow(self, body: str, rows: str) -> Answer:
        """The same with two columns, queue_offset and body."""
        return self._yielded(Dataset("ready", int(body), int(rows)), ["queue_offset", "body"])

    def _yielded(self, dataset: Dataset, columns: list[str]) -> Answer:
        from pyspark.sql.pandas.types import from_arrow_schema

        batch = arrow_rows.stored(dataset, 0, min(BATCH_BYTES // dataset.body, CHUNK, dataset.rows)).select(columns)
        sink, schema = pa.BufferOutputStream(), from_arrow_schema(batch.schema)
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed, share = sink.getvalue().to_pybytes(), dataset.rows // TASKS

        def give(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            one = pa.ipc.open_stream(packed).read_next_batch()
            left = sum(batch.num_rows for batch in batches) * share
            while left > 0:
                yield one.slice(0, left)
                left -= one.num_rows

        return summed(lambda: self.spark.range(0, TASKS, 1, TASKS).mapInArrow(give, schema))

    def engine(self, path: str, name: Engine, tags: str = "*", columns: str = "all") -> Answer:
        """rmqfast.spark.read_store with an engine, of all columns or of eight."""
        wanted = arrow_rows.EIGHT if columns == "eight" else None
        try:
            from rmqfast.spark import read_store
        except ImportError as error:
            raise Missing(f"rmqfast.spark cannot be imported: {error}") from None
        return summed(lambda: read_store(self.spark, path, TOPIC, tags=tags, columns=wanted, engine=name))

    def source(self, path: str, tags: str = "*") -> Answer:
        """rmqfast's Python data source."""
        try:
            from rmqfast.spark import RocketMQDataSource
        except ImportError as error:
            raise Missing(f"rmqfast.spark cannot be imported: {error}") from None
        self.spark.dataSource.register(RocketMQDataSource)
        options = {"storePath": path, "topic": TOPIC, "tags": tags}
        return summed(lambda: self.spark.read.format("rocketmq").options(**options).load())

    def route(self, query: str, route: str, path: str, *dataset: str) -> Answer:
        """A query over the store by one of the ways to read it, or over Parquet files of the same dataset."""
        from rmqfast.spark import map_store, read_store

        columns = {"noop": arrow_rows.EIGHT, "sum": ["body"] if route == "pruned" else None}.get(query)
        in_rust = TAG if query == "tag" and route == "arrow" else "*"
        if route == "Parquet":
            label, body, rows = dataset
            files = str(arrow_rows.parquet_files(Dataset(label, int(body), int(rows)), TASKS))
            return asked(query, lambda: self.spark.read.parquet(files))
        if route == "source":
            from rmqfast.spark import RocketMQDataSource

            self.spark.dataSource.register(RocketMQDataSource)
            options = {"storePath": path, "topic": TOPIC}
            return asked(query, lambda: self.spark.read.format("rocketmq").options(**options).load())
        if route == "map_store":
            return asked("", lambda: map_store(self.spark, path, TOPIC, body_bytes, "bytes long", columns=["body"]))
        name: Engine = "columnar" if route == "columnar" else "arrow"
        return asked(query, lambda: read_store(self.spark, path, TOPIC, tags=in_rust, columns=columns, engine=name))

    def decoded(self, path: str, query: str, way: str) -> Answer:
        """Fields of bodies of JSON: decoded by the columnar source (`scan`), or by Spark's `from_json` on its rows."""
        from rmqfast.spark import read_store

        begin = time.perf_counter()
        if way == "scan":
            frame = read_store(self.spark, path, TOPIC, engine="columnar", decode="json", schema=DDL)
        else:
            bodies = read_store(self.spark, path, TOPIC, engine="columnar", columns=["body"])
            frame = bodies.selectExpr(f"from_json(cast(body AS string), '{DDL}') AS value")
        row = frame.selectExpr(*QUERIES[query], "count(1) AS rows").first()
        assert row is not None
        return {"seconds": time.perf_counter() - begin, "rows": row["rows"], "ids": row[0]}

    def plain(self, path: str, body: str, rows: str) -> Answer:
        """A reader in plain Python under mapInPandas."""
        pieces = plain_reader.pieces(Dataset("plain", int(body), int(rows)), Path(path))

        def read(frames: Iterable[Any]) -> Iterator[Any]:
            for frame in frames:
                for piece in frame.itertuples(index=False):
                    yield from plain_reader.frames(*piece)

        def made() -> DataFrame:
            tasks = self.spark.createDataFrame(pieces, "name string, begin long, end long").repartition(TASKS)
            return tasks.mapInPandas(read, plain_reader.SCHEMA)

        return summed(made)

    def parquet(self, label: str, body: str, rows: str) -> Answer:
        """Uncompressed Parquet of the same rows, written before the clock starts."""
        path = arrow_rows.parquet_files(Dataset(label, int(body), int(rows)), TASKS)
        return summed(lambda: self.spark.read.parquet(str(path)))


def asked(query: str, made: Callable[[], DataFrame]) -> Answer:
    """Seconds of planning and running a query; what it found where that can be checked."""
    begin = time.perf_counter()
    frame = made()
    answer: Answer = {}
    if query in ("sum", "tag"):
        return summed(lambda: frame.where(f"tags = '{TAG}'") if query == "tag" else frame)
    if query == "noop":
        frame.select(*arrow_rows.EIGHT).write.format("noop").mode("overwrite").save()
    elif query == "max":
        frame.selectExpr("max(queue_offset)").first()
    elif query == "count":
        frame.count()
    else:
        summed_up = frame.select("body").mapInArrow(body_bytes, "bytes long") if query else frame
        row = summed_up.selectExpr("sum(bytes) AS bytes").first()
        assert row is not None
        answer["bytes"] = row["bytes"]
    return {"seconds": time.perf_counter() - begin, **answer}


def body_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A user's Python function: the bytes of the bodies, a row for each batch."""
    import pyarrow.compute as pc

    for batch in batches:
        total = pc.sum(pc.binary_length(batch.column("body"))).as_py() or 0
        yield pa.RecordBatch.from_pydict({"bytes": pa.array([total], pa.int64())})


def set_workers() -> None:
    """Spark's Python workers are to run this interpreter, and to find these modules."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))


def main() -> None:
    """Starts the session and answers requests on standard input."""
    set_workers()
    jobs = Jobs(session(sys.argv[1] if len(sys.argv) > 1 else ""))
    names = ("kafka", "ready", "ready_narrow", "engine", "source", "route", "decoded", "plain", "parquet")
    serve({name: getattr(jobs, name) for name in names})


if __name__ == "__main__":
    main()
