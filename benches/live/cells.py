"""The cells of the group `live`: which sides do the same job, how, and with messages of which sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from goals import FIRST, LABELS, MARKS, SECOND

EIGHT = "topic,queue_id,queue_offset,physical_offset,tags,keys,store_timestamp,body"
JVM, PYTHON, KAFKA, READY, RATE = "rocketmq-columnar", "rocketmq", "kafka", "bench.ReadyColumns", "rate-micro-batch"
Place = Literal["rmqfast", "RocketMQ", "Kafka", ""]
Job = Literal["read", "pull", "scan", "socket", "mirror", "stream", "few", "lag", "real-time", "endurance", "write"]


@dataclass(frozen=True)
class Side:
    """One of those that are compared.

    Attributes:
        name: In the table.
        source: The format for Spark; "" without Spark.
        place: Whose broker.
        batch: Messages a pull.
        manager: Of the checkpoint's files; "": Spark's default.
        job: Another one than its cell's.
        via: Other than by pulls: "log", out of the broker's log over the wire; "store", out of its directory.
        share: How long its larger job takes, of what is wanted; a floor begins at once, and needs no long job.
    """

    name: str
    source: str
    place: Place = "rmqfast"
    batch: int = 1024
    manager: str = ""
    job: Job | None = None
    via: Literal["", "log", "store"] = ""
    share: float = 1.0


@dataclass(frozen=True)
class Cell:
    """One comparison: all its sides take turns in one run.

    Attributes:
        name: For `--cell`, and in the names of its series.
        job: What the sides do.
        sides: Who.
        query: Of a read: `sum` of the bodies' lengths, or a `noop` write of all columns.
        columns: Of the rows; "": all.
        rows: Of a batch of a stream.
        batches: Of a stream.
        rounds: At most.
        warm_ups: The same, of those that do not count.
        sizes: Labels of the datasets.
        spark: Which of two.
        figures: What one run gives, where that is more than one figure.
        unasked: Whether it runs without being named.
    """

    name: str
    job: Job
    sides: tuple[Side, ...]
    query: Literal["sum", "noop"] = "sum"
    columns: str = EIGHT
    rows: int = 0
    batches: int = 0
    rounds: int = 1000
    warm_ups: int = 1
    sizes: tuple[str, ...] = LABELS
    spark: Literal["newest", "4.0"] = "newest"
    figures: tuple[str, ...] = ()
    unasked: bool = True


OURS = (Side("JVM", JVM), Side("Python", PYTHON))
TUNED = Side("Kafka", KAFKA, "Kafka")
PULL = Side("pull", "", job="pull", share=0.3)
IDLE = Side("ready", READY, "", share=0.3)
ALL = (*OURS, TUNED, IDLE)
FRAMES = Side("frames", "")
DUE = Side("ready", "bench.ReadyTimes", "")
ARROW = (Side("scan", ""), Side("all", ""), Side("pull", "", job="pull"))
STOCK = (Side("JVM", JVM, "RocketMQ", 32), Side("pull", "", "RocketMQ", 32, job="pull", share=0.3))
LOGS = (
    Side("log", JVM, "RocketMQ", 32, via="log"),
    Side("pulls", JVM, "RocketMQ", 32),
    TUNED,
    Side("store", JVM, "RocketMQ", via="store"),
    Side("mirror", JVM, "RocketMQ", job="mirror", via="store"),
    Side("socket", "", "RocketMQ", job="socket", share=0.3),
)
FILES = "FileSystemBasedCheckpointFileManager"
MANAGED = tuple(replace(side, name=f"{side.name} files", manager=FILES) for side in (*OURS, IDLE))
# the floor first: in a session's first run its JVM still compiles, which makes the times between batches longer
TIMELY = (DUE, OURS[0], *(replace(side, name=f"{side.name} files", manager=FILES) for side in (DUE, OURS[0])))
AGES = ("p50", "p99", "p999", "gap")
HELD = tuple(f"{what}-{mark}" for what in ("heap", "resident", "threads", "connections") for mark in MARKS)
# Spark's own first: the heap and the compiled code of a session grow for some thousand batches of whatever source
ENDURING = (Side("rate", RATE, "", manager=FILES), Side("JVM", JVM, manager=FILES))
RATES = (Side("rate", RATE, ""), Side("rate files", RATE, "", manager=FILES))

# those without Kafka first: its broker stays until the dataset's cells are done
CELLS = (
    Cell("stream", "stream", (*OURS, IDLE, *MANAGED), rows=131_072, batches=10, warm_ups=2),
    Cell(
        "large",
        "stream",
        (OURS[0], IDLE, Side("batch", JVM, job="read")),
        "noop",
        rows=1_048_576,
        batches=8,
        warm_ups=2,
    ),
    Cell("few", "few", (*OURS, *MANAGED[:2], *RATES), rows=32, batches=42, sizes=(FIRST,), warm_ups=2),
    Cell("lag", "lag", OURS, rounds=3, warm_ups=0),
    Cell("real-time", "real-time", TIMELY, columns="body", rounds=1, sizes=(FIRST,), figures=AGES),
    Cell("write", "write", (*OURS, FRAMES)),
    Cell("sum", "read", (*OURS, TUNED, PULL, IDLE), warm_ups=2),
    Cell("noop", "read", ALL, query="noop", columns="", warm_ups=2),
    Cell("arrow", "scan", ARROW),
    Cell("sum-4.0", "read", (*OURS, TUNED), spark="4.0", unasked=False, warm_ups=2),
    Cell("noop-4.0", "read", ALL, query="noop", columns="", spark="4.0", unasked=False, warm_ups=2),
    Cell("sum-4.9.4", "read", STOCK, warm_ups=2),
    Cell("write-4.9.4", "write", tuple(replace(side, place="RocketMQ") for side in (*OURS, FRAMES))),
    Cell("log", "read", LOGS, spark="4.0", warm_ups=2),
    Cell("endurance", "endurance", ENDURING, rows=32, rounds=1, sizes=(SECOND,), figures=HELD, unasked=False),
)
BY_NAME = {cell.name: cell for cell in CELLS}
