"""The goals: which figure of which group is held against which other, and what the ratio should reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from measurement import Series

LABELS = ("1k", "128")
FIRST, SECOND = LABELS


@dataclass(frozen=True)
class Goal:
    """One row of the table. `ours` and `peer` name series; without a peer the value itself is held to the bound."""

    group: str
    title: str
    ours: str
    peer: str | None
    bound: float | None  # None: for information
    kind: str = "rate"  # rate: rows/s of ours over the peer's; time, cpu: seconds per row; value: ours alone
    unit: str = "x"
    either: str = ""  # rows that share this text are met when one of them is

    def ratio(self, found: Mapping[str, Series]) -> float | None:
        """The measured ratio; None where one of the two was not measured."""
        series = [found.get(name) for name in (self.ours, self.peer) if name]
        if any(one is None or not one.samples for one in series):
            return None
        ours = found[self.ours]
        if self.peer is None:
            return ours.rate if self.kind == "rate" else ours.value
        if self.kind == "cpu":
            return ours.cpu_per_row / found[self.peer].cpu_per_row
        ratio = ours.rate / found[self.peer].rate
        return 1 / ratio if self.kind == "time" else ratio

    @property
    def at_least(self) -> bool:
        """Whether more is better."""
        return self.kind == "rate"

    def holds(self, ratio: float) -> bool:
        """Whether a ratio reaches the goal."""
        return self.bound is None or (ratio >= self.bound if self.at_least else ratio <= self.bound)

    @property
    def text(self) -> str:
        """The goal as it is written in the table."""
        if self.bound is None:
            return "-"
        return f"{'≥' if self.at_least else '≤'} {self.bound:g} {self.unit}"


def pair(
    group: str, title: str, ours: str, peer: str, bounds: tuple[float | None, float | None], **more: str
) -> list[Goal]:
    """The same goal for both body sizes."""
    goals = zip(LABELS, bounds, strict=True)
    return [Goal(group, f"{title}, {size(at)}", f"{ours} {at}", f"{peer} {at}", bound, **more) for at, bound in goals]


def size(label: str) -> str:
    """The body size that a label stands for."""
    return {FIRST: "1 KiB", SECOND: "128 B"}[label]


def appends() -> list[Goal]:
    """An append must beat RocketMQ's by so much, or come near to the disk's own speed."""
    goals = []
    for at, bound, of_rust in zip(LABELS, (1.5, 3.0), (2.0, 4.0), strict=True):
        title, ours = f"append_many, async, index on, {size(at)}", f"append rmqfast {at}"
        goals += [
            Goal("append", f"{title} : putMessage", ours, f"append RocketMQ {at}", bound, either=title),
            Goal("append", f"{title} : bare maps", ours, f"append bare maps {at}", 0.8, either=title),
        ]
        single, java = f"one a call, {size(at)}", f"append RocketMQ {at}"
        goals += [
            Goal("append", f"Python, {single} : putMessage", f"append rmqfast singly {at}", java, 1.0),
            Goal("append", f"Rust, {single} : putMessage", f"append Rust caller {at}", java, of_rust),
            Goal("append", f"Rust, {single} : bare maps", f"append Rust caller {at}", f"append bare maps {at}", 0.8),
        ]
    return goals


def engine() -> list[Goal]:
    """The storage engine beside its peer and the disk."""
    recovery = "recovery rmqfast"
    return [
        Goal("recovery", "recovery of a large store, CRC, bytes/s", recovery, None, 1e9, unit="B/s"),
        Goal("recovery", "recovery : RocketMQ's", recovery, "recovery RocketMQ", 2.0),
        Goal("recovery", "recovery without queues, bytes/s", f"{recovery}, no queues", None, 1.5e9, unit="B/s"),
        *pair("sync", "64 callers that wait : bare groups", "sync appends", "sync bare groups", (0.8, 0.8)),
    ]


def scans() -> list[Goal]:
    """Scans to Arrow in one process."""
    whole, peer = "scan rmqfast", "scan RocketMQ decoded"
    return [
        *pair("scan", "scan to Arrow : bare Rust loop", whole, "scan bare Rust loop", (0.8, 0.8)),
        *pair("scan", "scan to Arrow : getMessage and decode", whole, peer, (2.0, 2.0)),
        *pair("scan", "scan, CRC checked : not checked", "scan rmqfast CRC", whole, (1.25, 1.25), kind="time"),
        *pair("scan", "scan without body and properties : with", "scan rmqfast narrow", "scan rmqfast all", (1.4, 1.4)),
        *pair("scan", "scan of eight columns : bare Rust loop", f"{whole} eight", "scan bare Rust loop", (None, None)),
        *pair("scan", "scan to Arrow, mapped : bare Rust loop", f"{whole} mapped", "scan bare Rust loop", (None, None)),
        *pair("tag", "tag scan, 1 % hits : getMessage with the tag", "tag rmqfast", "tag RocketMQ", (2.0, 2.0)),
        *pair("tag", "tag scan, mapped : getMessage with the tag", "tag rmqfast mapped", "tag RocketMQ", (2.0, 2.0)),
    ]


def sparks() -> list[Goal]:
    """Spark batch reads of all columns on two local threads."""
    goals = []
    for engine in ("arrow", "source"):
        title, ceiling = f"Spark {engine} : ready batches", "spark ready batches"
        goals += pair("spark", title, f"spark {engine}", ceiling, (0.75, 0.5))
    others = ("ready narrow", "two columns, ready"), ("plain Python", "plain Python"), ("Parquet", "Parquet, body only")
    for series, title in others:
        goals += pair("spark", f"Spark {title} : ready batches", f"spark {series}", "spark ready batches", (None, None))
    for engine in ("arrow", "source"):
        ours = f"kafka rmqfast {engine}"
        goals += pair("kafka", f"Spark 4.0 {engine} : tuned Kafka", ours, "kafka tuned", (1.5, 2.2))
        goals += pair("kafka", f"Spark 4.0 {engine} : Kafka defaults", ours, "kafka default", (2.2, 2.6))
    eight = "kafka rmqfast arrow eight"
    goals += pair("kafka", "Spark 4.0 arrow, eight columns : tuned Kafka", eight, "kafka tuned", (None, None))
    goals += pair("kafka", "Spark 4.0 pandas : Kafka defaults", "kafka rmqfast pandas", "kafka default", (1.3, 1.3))
    for engine in ("arrow", "source"):
        title, ours = f"Spark 4.0 {engine}, tag of 1 % : Kafka's key", f"kafka rmqfast {engine} tag"
        goals += pair("kafka", title, ours, "kafka key", (6.0, 8.0))
    return goals


def columnars() -> list[Goal]:
    """The columnar source: Spark's rows without a Python process."""
    goals = []
    for query, other, title, bounds in (
        ("sum", "arrow", "mapInArrow, all columns", (3.0, 3.0)),
        ("sum", "pruned", "mapInArrow, body only", (2.0, 2.0)),
        ("sum", "Parquet", "Parquet", (1.8, 1.2)),
        ("noop", "arrow", "mapInArrow", (2.2, 2.2)),
        ("noop", "Parquet", "Parquet", (1.8, 1.1)),
        ("max", "source", "the Python data source", (5.0, 5.0)),
        ("tag", "arrow", "mapInArrow, tag in Rust", (1.7, 1.7)),
        ("tag", "Parquet", "Parquet", (1.5, 1.5)),
    ):
        ours, peer = f"columnar {query} columnar", f"columnar {query} {other}"
        goals += pair("columnar", f"columnar {QUERIES[query]} : {title}", ours, peer, bounds)
    ours, peer = "columnar sum columnar", "columnar sum arrow"
    goals += pair("columnar", "columnar, CPU of sum(length(body)) : mapInArrow", ours, peer, (0.35, 0.35), kind="cpu")
    ours, peer = "columnar python map_store", "columnar python columnar"
    goals += pair("columnar", "map_store : columnar, then mapInArrow", ours, peer, (3.0, 3.0))
    ours = "kafka rmqfast columnar"
    return goals + pair("kafka", "Spark 4.0 columnar : tuned Kafka", ours, "kafka tuned", (6.0, 10.0))


QUERIES = {
    "sum": "sum(length(body))",
    "noop": "noop write of eight columns",
    "max": "max(queue_offset)",
    "tag": "tag of 1 %",
}


def all_goals() -> list[Goal]:
    """Every row of the table, in order."""
    return [
        *scans(),
        *appends(),
        *engine(),
        *sparks(),
        *columnars(),
        Goal("memory", "anonymous memory of a large scan", "memory rmqfast", None, 256, "value", "MiB"),
        Goal("growth", "seconds per GiB, large store : small store", "growth large", "growth small", 1.1, "time"),
        Goal("import", "import rmqfast", "import rmqfast", None, 60, "value", "ms"),
        Goal("scan", "memcpy, bytes/s", "memcpy", None, None, unit="B/s"),
    ]
