"""Spark jobs that read topics of brokers, in one session; run as a module, it is a peer's child.

usage: python -m live.jobs MASTER [JARS]

MASTER is Spark's, or `workers:2`, `held:2`: a standalone cluster of its own, whose workers are held to a core each.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from pyspark.sql import SparkSession

import arrow_rows
from data import TOPIC, scratch_dir
from live.summing import SummingStream
from peer import Answer, Failed, Missing, serve
from spark_peers import Jobs, session, set_workers, summed

PATIENCE = 120.0
SETTLED = 3  # triggers of a stream that has just begun, which do not count


class LiveJobs(Jobs):
    """The jobs of one session, each a handler of requests."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._following: SummingStream | None = None

    def topic(self, name_server: str, batch: str, columns: str = "all") -> Answer:
        """rmqfast.spark.read_topic, of all columns or of eight."""
        from rmqfast.spark import read_topic

        wanted = arrow_rows.EIGHT if columns == "eight" else None
        return summed(lambda: read_topic(self.spark, name_server, TOPIC, columns=wanted, pull_batch_size=int(batch)))

    def topic_source(self, name_server: str, batch: str) -> Answer:
        """rmqfast's Python data source of a cluster."""
        return summed(
            lambda: self._source().read.format("rocketmq").options(**options(name_server, TOPIC, batch)).load()
        )

    def stream(self, name_server: str, batch: str, most: str) -> Answer:
        """All there is in batches of so many messages: timed from the end of the first batch to that of the last."""
        given = {**options(name_server, TOPIC, batch), "maxOffsetsPerTrigger": most}
        return self._steady(self._source(), given, "rocketmq")

    def ready_batch(self, body: str, rows: str) -> Answer:
        """A data source in Python whose batches are ready."""
        given = {"body": body, "rows": rows, "most": rows}
        return summed(lambda: self._ready().read.format("ready").options(**given).load())

    def ready_stream(self, body: str, rows: str, most: str) -> Answer:
        """The same as a stream."""
        return self._steady(self._ready(), {"body": body, "rows": rows, "most": most}, "ready")

    def _steady(self, spark: SparkSession, given: dict[str, str], source: str) -> Answer:
        with SummingStream(spark, given, {"availableNow": True}, source=source) as stream:
            stream.wait_for_end(PATIENCE)
            phases = stream.phases
        first, *others = stream.triggers
        if not others:
            raise Missing("PySpark before 4.2 streams all there is in one batch")
        told = {"all_rows": stream.rows, "bytes": stream.bytes, "triggers": len(stream.triggers), "phases": phases}
        last = others[-1]
        took = {"seconds": last.ended - first.ended, "cpu_seconds": last.cpu_seconds - first.cpu_seconds}
        return {"rows": sum(one.rows for one in others), **took, **told}

    def follow(self, name_server: str, topic: str, batch: str, every: str) -> Answer:
        """Starts a stream of a topic, with a trigger each so many seconds; waits for its first row."""
        given = options(name_server, topic, batch)
        trigger = {"processingTime": f"{every} seconds"}
        with ExitStack() as undo:
            self._following = undo.enter_context(SummingStream(self._source(), given, trigger, with_lag=True))
            self._following.wait_for_rows(1, PATIENCE)
            undo.pop_all()
        return {"rows": 0, "seconds": 0}

    def followed(self, rows: str) -> Answer:
        """The end of that stream, once it has so many rows: by how many messages its broker was ahead at most."""
        assert self._following is not None
        with self._following as stream:
            stream.wait_for_rows(int(rows), PATIENCE)
        counted = stream.triggers[SETTLED:]
        if len(counted) < 2:
            raise Failed(f"expected {SETTLED + 2} triggers, got {len(stream.triggers)}")
        seconds = counted[-1].ended - counted[0].ended
        told = {"all_rows": stream.rows, "bytes": stream.bytes, "triggers": len(counted)}
        return {
            "rows": sum(one.rows for one in counted[1:]),
            "seconds": seconds,
            "lag": max(one.lag for one in counted),
            **told,
        }

    def _ready(self) -> SparkSession:
        from live.ready import ReadySource

        self.spark.dataSource.register(ReadySource)
        return self.spark

    def _source(self) -> SparkSession:
        from rmqfast.spark import RocketMQDataSource

        self.spark.dataSource.register(RocketMQDataSource)
        return self.spark


def options(name_server: str, topic: str, batch: str) -> dict[str, str]:
    """The data source's options for all of a topic."""
    return {"nameServer": name_server, "topic": topic, "startingOffsets": "earliest", "pullBatchSize": batch}


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
        jobs = LiveJobs(session(jars, master))
        reads = ("kafka", "engine", "source", "topic", "topic_source", "ready_batch")
        names = (*reads, "stream", "ready_stream", "follow", "followed")
        serve({name: getattr(jobs, name) for name in names})


if __name__ == "__main__":
    main()
