"""Spark jobs that read, stream and write live topics, in one session; run as a module, it is a peer's child.

usage: python -m live.jobs MASTER [JARS]

MASTER is Spark's, or `workers:2`, `held:2`: a standalone cluster of its own, whose workers are held to a core each. A
request names a source by its format, and gives the options as JSON: the jobs do not know whose source it is.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from data import scratch_dir
from live.query import Query, checkpoint_manager
from peer import Answer, Failed, serve
from processes import CpuTime
from spark_peers import session, set_workers

PATIENCE, LONG_PATIENCE = 300.0, 1700.0
SETTLED = 3  # triggers of a stream that has just begun, which do not count
READY = "bench.ReadyColumns"


class LiveJobs:
    """The jobs of one session, each a handler of requests."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._following: Query | None = None
        self._registered = False

    def read(self, source: str, options: str, query: str, reads: str) -> Answer:
        """One batch job that reads the same so many times: a `sum` of lengths, or a `noop` write of all columns."""
        column = "value" if source == "kafka" else "body"
        reader = self._sources().read.format(source).options(**json.loads(options))
        if source == READY and query == "noop":
            from rmqfast.spark.schema import row_schema

            reader = reader.schema(row_schema())  # all columns, as the others have

        def work() -> Answer:
            frame = reduce(DataFrame.unionAll, [reader.load()] * int(reads))
            if query == "noop":
                frame.write.format("noop").mode("overwrite").save()
                return {}
            row = frame.selectExpr(f"coalesce(sum(length({column})), 0) AS bytes", "count(1) AS rows").first()
            assert row is not None
            return {"rows": row["rows"], "bytes": row["bytes"]}

        return with_cpu(work)

    def write(self, sink: str, options: str, body: str, rows: str) -> Answer:
        """Rows that are ready, into a topic."""
        ready = self.spark.read.format(READY).options(body=body, rows=rows, tasks=4).load()
        writer = ready.select("tags", "keys", "body").write.format(sink).options(**json.loads(options))
        self._sources()

        def work() -> Answer:
            writer.mode("append").save()
            return {"rows": int(rows)}

        return with_cpu(work)

    def stream(self, source: str, options: str, batches: str, manager: str) -> Answer:
        """The batches behind the first: rows, seconds, CPU time; the value is ms from trigger to trigger."""
        with self._query(source, json.loads(options), manager, {"processingTime": "0 seconds"}) as query:
            query.wait_for_batches(1, PATIENCE)
            cpu = CpuTime()
            query.wait_for_batches(int(batches), PATIENCE)
            cpu_seconds = cpu.seconds
            first, *others = query.batches[: int(batches)]
        return {
            "rows": sum(one.rows for one in others),
            "seconds": others[-1].ended - first.ended,
            "cpu_seconds": cpu_seconds,
            "value": statistics.median(after.began - before.began for before, after in pairwise(others)) * 1000,
        }

    def follow(self, source: str, options: str, every: str, manager: str) -> Answer:
        """Starts a stream with a trigger each so many seconds; waits for its first row."""
        with ExitStack() as undo:
            trigger = {"processingTime": f"{every} seconds"}
            self._following = undo.enter_context(self._query(source, json.loads(options), manager, trigger))
            self._following.wait_for_batches(1, PATIENCE)
            undo.pop_all()
        return {}

    def followed(self, rows: str, began: str, rate: str) -> Answer:
        """Waits for so many rows of that stream: by how many messages its broker was ahead at most.

        The messages came at a rate from a moment on, seconds since 1970.
        """
        assert self._following is not None
        self._following.wait_for_rows(int(rows), PATIENCE)
        batches = self._following.batches
        done, behind = 0, []
        for one in batches:
            done += one.rows
            came = min(int(rows), 1 + int((one.ended - float(began)) * float(rate)))
            behind.append(came - done)
        counted = behind[SETTLED:]
        if not counted:
            raise Failed(f"expected {SETTLED + 1} triggers, got {len(behind)}")
        return {"rows": done, "seconds": batches[-1].ended - batches[0].began, "lag": max(0, *counted)}

    def real_time(self, source: str, options: str, every: str, manager: str) -> Answer:
        """Starts a stream in Real-Time Mode, batches of so many seconds, into a sink that notes how old rows are."""
        jvm: Any = self.spark._jvm  # noqa: SLF001  # PySpark's own `foreach` gives rows in bulk
        jvm.bench.BornAges.reset()
        trigger = jvm.org.apache.spark.sql.streaming.Trigger.RealTime(f"{every} seconds")

        def start(writer: Any) -> Any:
            writer = writer.outputMode("update")._jwrite  # noqa: SLF001
            return StreamingQuery(writer.foreach(jvm.bench.BornAges()).trigger(trigger).start())

        with ExitStack() as undo:
            with checkpoint_manager(self.spark, manager):
                query = Query(self._sources(), source, json.loads(options), start=start)
            self._following = undo.enter_context(query)
            self._following.wait(lambda: jvm.bench.BornAges.batches() > 0, "a batch", PATIENCE)
            undo.pop_all()
        return {}

    def real_time_ages(self, rows: str) -> Answer:
        """Percentiles of the ages of rows and the longest gap between batches so far, in ms."""
        jvm: Any = self.spark._jvm  # noqa: SLF001
        ages = jvm.bench.BornAges
        time.sleep(1.0)  # what was sent last
        counted = ages.count()
        if counted < int(rows):
            raise Failed(f"expected {rows} rows behind the first batch, got {counted}")
        told = {name: ages.age(share) for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))}
        return {"rows": counted, **told, "gap": ages.gap()}

    def batches(self, number: str) -> Answer:
        """Memory, threads and connections of the JVM after so many batches of that stream and a garbage collection.

        MiB of heap and of RSS, and threads.
        """
        jvm: Any = self.spark._jvm  # noqa: SLF001
        assert self._following is not None
        self._following.wait_for_batches(int(number), LONG_PATIENCE, looks=1.0)
        for _ in range(3):  # what a collection leaves for finalizers is gone with the next
            jvm.java.lang.System.gc()
        runtime, pid = jvm.java.lang.Runtime.getRuntime(), jvm.java.lang.ProcessHandle.current().pid()
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return {
            "heap": (runtime.totalMemory() - runtime.freeMemory()) / 2**20,
            "resident": int(status["VmRSS"].split()[0]) / 1024,
            "threads": int(status["Threads"]),
        }

    def end(self) -> Answer:
        """Ends that stream."""
        assert self._following is not None
        with self._following:
            return {}

    def _query(self, source: str, options: dict[str, str], manager: str, trigger: dict[str, Any]) -> Query:
        with checkpoint_manager(self.spark, manager):
            return Query(
                self._sources(),
                source,
                options,
                start=lambda writer: writer.format("noop").trigger(**trigger).start(),
            )

    def _sources(self) -> SparkSession:
        if not self._registered:
            from rmqfast.spark import RocketMQDataSource

            self.spark.dataSource.register(RocketMQDataSource)
            self._registered = True
        return self.spark


def with_cpu(work: Callable[[], Answer]) -> Answer:
    """The answer of a job with its seconds, and the CPU seconds of Spark with its workers."""
    cpu, begin = CpuTime(), time.perf_counter()
    answer = work()
    seconds = time.perf_counter() - begin
    return {**answer, "seconds": seconds, "cpu_seconds": cpu.seconds}


def main() -> None:
    """Starts the session, and a cluster for it where one is asked for; answers requests on standard input."""
    master, jars = sys.argv[1], "".join(sys.argv[2:])
    set_workers()
    with ExitStack() as stack:
        how, _, count = master.partition(":")
        if how in ("workers", "held"):
            from live.workers import Workers

            directory = scratch_dir() / f"workers-{how}-{count}"
            master = stack.enter_context(Workers(directory, int(count), held=how == "held")).master
        # in 3 GiB the reads of all columns by one side after the other fail
        jobs = LiveJobs(session(jars, master, "8g"))
        names = ("read", "write", "stream", "follow", "followed", "batches", "end")
        serve({name: getattr(jobs, name) for name in (*names, "real_time", "real_time_ages")})


if __name__ == "__main__":
    main()
