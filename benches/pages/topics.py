"""The tables of live topics in Spark: batches, streams, Real-Time Mode, the sink."""

from __future__ import annotations

from goals import MARKS
from pages.row import Row
from pages.table import Grid, Table

_PULLER = "a puller alone, one connection"
_PYTHON, _KAFKA, _READY = "the Python data source", "Kafka tuned", "ready vectors"
_SUM = "columnar source, eight columns, `sum(length(body))`"


def batch(what: str, cell: str, *more: tuple[str, str]) -> tuple[Row, ...]:
    """A read of one version of Spark beside the two others, and more: rate, CPU, start."""
    ours, python, kafka = (f"live {cell} {side} {{}}" for side in ("JVM", "Python", "Kafka"))
    return (
        Row(what, ours, _PYTHON, python),
        Row("", ours, _KAFKA, kafka),
        *(Row("", ours, against, f"live {cell} {side} {{}}") for against, side in more),
        Row("its CPU a row", ours, _PYTHON, python, "cpu"),
        Row("the start of its job", ours, _PYTHON, python, "value", "ms"),
        Row("", ours, _KAFKA, kafka, "value", "ms"),
    )


BATCHES = Table(
    (
        *batch(f"Spark 4.3, {_SUM}", "sum", (_PULLER, "pull")),
        *batch(f"Spark 4.0, {_SUM}", "sum-4.0"),
        *batch("Spark 4.0, all columns, noop write", "noop-4.0", (_READY, "ready")),
        Row(
            "Spark 4.3, RocketMQ 4.9.4 as it is shipped, 32 a pull, the sum",
            "live sum-4.9.4 JVM {}",
            "a puller alone",
            "live sum-4.9.4 pull {}",
        ),
        Row(
            "no Spark: `MessageCluster.scan` to Arrow, eight columns",
            "live arrow scan {}",
            _PULLER,
            "live arrow pull {}",
        ),
        Row("all columns", "live arrow all {}", _PULLER, "live arrow pull {}"),
    ),
    goals=True,
)

LOG = Table(
    (
        Row('the sum out of its log (`via="log"`)', "live log log {}", "by pulls", "live log pulls {}"),
        Row("", "live log log {}", _KAFKA, "live log Kafka {}"),
        Row("", "live log log {}", "a bare socket that drops as many bytes of the log", "live log socket {}"),
        Row("", "live log log {}", "the files of the same store", "live log store {}"),
        Row("copied from nothing by a mirror, then the sum", "live log mirror {}", _KAFKA, "live log Kafka {}"),
    ),
    goals=True,
)

STREAMS = Table(
    (
        Row("131,072 rows a batch", "live stream JVM {}", _PYTHON, "live stream Python {}"),
        Row("", "live stream JVM {}", _READY, "live stream ready {}"),
        Row("the same, local files", "live stream JVM files {}", _PYTHON, "live stream Python files {}"),
        Row("", "live stream JVM files {}", _READY, "live stream ready files {}"),
        Row("1,048,576 rows a batch", "live large JVM {}", "its own batch read (noop)", "live large batch {}"),
        Row("", "live large JVM {}", _READY, "live large ready {}"),
        Row(
            "32 rows a batch, from trigger to trigger",
            "live few JVM 1k",
            "Spark's `rate-micro-batch`",
            "live few rate 1k",
            "value",
            "ms",
        ),
        Row(
            "the same, local files",
            "live few JVM files 1k",
            "Spark's `rate-micro-batch`, local files",
            "live few rate files 1k",
            "value",
            "ms",
        ),
        Row("", "live few JVM files 1k", "default files", "live few JVM 1k", "value", "ms"),
        Row(
            "50,000 messages/s, a trigger a second: behind at most, in triggers",
            "live lag JVM {}",
            _PYTHON,
            "live lag Python {}",
            "value",
            "",
        ),
    ),
    goals=True,
)

REAL_TIME = Grid(
    ("default files", "local files", "Spark alone, default files", "Spark alone, local files"),
    tuple(
        (
            what,
            "ms",
            tuple(f"live real-time {side}{files} 1k {key}" for side in ("JVM", "ready") for files in ("", " files")),
        )
        for key, what in (
            ("p50", "age of a row: median"),
            ("p99", "99th percentile"),
            ("p999", "99.9th percentile"),
            ("gap", "longest time between two batches"),
        )
    ),
)

SINKS = Table(
    (
        Row("`rocketmq-columnar` into this broker", "live write JVM {}", "the Python sink", "live write Python {}"),
        Row("its CPU a message", "live write JVM {}", "the Python sink", "live write Python {}", "cpu"),
        Row(
            "`rocketmq-columnar` into this broker",
            "live write JVM {}",
            "requests that are ready, over one socket",
            "live write frames {}",
        ),
        Row(
            "`rocketmq-columnar` into RocketMQ 4.9.4",
            "live write-4.9.4 JVM {}",
            "the Python sink",
            "live write-4.9.4 Python {}",
        ),
    )
)

ENDURANCE = Grid(
    tuple(f"{name}, after {mark:,} batches" for name in ("`rate-micro-batch`", "columnar source") for mark in MARKS),
    tuple(
        (
            what,
            unit,
            tuple(f"live endurance {side} 128 {key}-{mark}" for side in ("rate", "JVM") for mark in MARKS),
        )
        for key, what, unit in (
            ("heap", "heap after a collection", "MiB"),
            ("resident", "memory (RSS)", "MiB"),
            ("threads", "threads", ""),
            ("connections", "connections to the broker", ""),
        )
    ),
)

EARLIER = Table(
    (
        Row(
            "pulling reader into Arrow, RocketMQ's broker, 32 a pull, one connection",
            "live pull rmqfast {}",
            "the Java pull consumer",
            "live pull Java {}",
        ),
        Row("two workers with a core each", "live held 2 {}", "one worker", "live held 1 {}"),
        Row("planning 10,000 queues at RocketMQ's broker", "live plan RocketMQ", kind="value", unit="s"),
        Row("the same at this broker", "live plan rmqfast", kind="value", unit="s"),
    )
)
