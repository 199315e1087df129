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


def brokers() -> list[Goal]:
    """The broker beside RocketMQ's, with RocketMQ's Java clients; CPU is that of the broker's process."""
    goals = []
    for row, title, bound in (
        ("sync 1", "sync send, 1 thread", 1.5),
        ("sync 4", "sync send, 4 threads", 1.5),
        ("sync 16", "sync send, 16 threads", 1.5),
        ("async", "async send, 256 in flight", 1.5),
        ("batch", "batch send of 64", 1.5),
        ("pull 32", "pull of 32", 1.5),
        ("pull 1024", "pull of 1,024", 1.2),
        ("push 32", "push of 32, from start()", 1.5),
    ):
        ours, theirs = f"broker rmqfast {row}", f"broker RocketMQ {row}"
        goals += pair("broker", title, ours, theirs, (bound, bound))
        goals += pair("broker", f"{title}: CPU of the broker a message", ours, theirs, (0.35, 0.35), kind="cpu")
    tails = pair(
        "broker",
        "99th percentile of a sync send at half load",
        "broker rmqfast p99",
        "broker RocketMQ p99",
        (0.7, 0.7),
        kind="time",
    )
    wanted: tuple[tuple[str, tuple[float | None, ...]], ...]
    wanted = ("rmqfast", (300, 80, 250, 400)), ("RocketMQ", (None,) * 4)
    for side, bounds in wanted:
        for limit, name, title, unit in zip(
            bounds,
            ("start", "idle", "crowd delivery", "crowd memory"),
            (
                "start until a message is accepted",
                "memory, idle",
                "one message to 5,000 held pulls, 99th percentile",
                "memory with them",
            ),
            ("ms", "MiB", "ms", "MiB"),
            strict=True,
        ):
            tails.append(Goal("broker", f"{side}: {title}", f"broker {side} {name}", None, limit, "value", unit))
    return goals + tails


def clients() -> list[Goal]:
    """Our clients beside RocketMQ's, on the same broker of RocketMQ's; `own` is ours on our broker."""
    goals, ours, java = [], "client rmqfast", "client Java"
    for row, title, bound in (
        ("sync 1", "sync send, 1 thread", 1.4),
        ("sync 4", "sync send, 4 threads", 1.1),
        ("async", "async send, 256 in flight", 1.2),
        ("pull 32", "lite pull into Arrow, 32 a pull", 3.0),
    ):
        goals += pair("client", f"{title} : Java client", f"{ours} {row}", f"{java} {row}", (bound, bound))
    title = "async send to our broker : Java client on Java's"
    goals += pair("client", title, "client own async", f"{java} async", (2.0, 2.0))
    for row in ("sync 1", "sync 4", "async"):
        goals += pair("client", f"{row} : Go client", f"{ours} {row}", f"client Go {row}", (1.0, 1.0))
    for row in ("sync 1", "sync 4"):
        goals += pair("client", f"{row} : librocketmq's binding", f"{ours} {row}", f"client binding {row}", (2.0, 2.0))
    for row, title in (
        ("sync 1", "sync send, 1 thread"),
        ("async", "async send, 256 in flight"),
        ("batch", "batch send of 64"),
        ("columns", "batch send of 64, from Arrow, 4 in flight"),
    ):
        goals += pair("client", f"{title} : bare socket", f"{ours} {row}", f"client bare {row}", (0.8, 0.8))
    return goals + client_rates()


def client_rates() -> list[Goal]:
    """Our clients by themselves."""
    goals = []
    for at in LABELS:
        for series, title, bound, either in (
            ("rmqfast batch", "batch send of 64", 250_000, "batches"),
            ("rmqfast columns", "batch send of 64, from Arrow", 250_000, "batches"),
            ("own columns", "batch send of 64, from Arrow, our broker", None, ""),
            ("own pull 1024", "lite pull into Arrow, 1,024 a pull, our broker", 1_500_000, ""),
            ("own push 32", "push in batches of 32, our broker", 250_000, ""),
            ("own push 1", "push one by one, our broker", 100_000, ""),
            ("rmqfast push 32", "push in batches of 32", None, ""),
            ("rmqfast push 1", "push one by one", None, ""),
        ):
            chosen = f"{either} {at}" if either else ""
            row = Goal("client", f"{title}, {size(at)}", f"client {series} {at}", None, bound, unit="/s", either=chosen)
            goals.append(row)
        title, waiting = "memory, 1 M messages behind a slow listener", f"client rmqfast waiting {at}"
        goals.append(Goal("client", f"{title}, {size(at)}", waiting, None, 200, "value", "MiB"))
    return goals


def round_trips() -> list[Goal]:
    """A client's requests in Python beside plain sockets in Python."""
    one, four, title = "remoting rmqfast 1", "remoting rmqfast 4", "round trips of a client in Python"
    return [
        Goal("remoting", f"{title}, 1 thread", one, None, 15_000, unit="/s"),
        Goal("remoting", f"{title}, 1 thread : plain socket", one, "remoting socket 1", 1.0),
        Goal("remoting", f"{title}, 4 threads : plain sockets", four, "remoting socket 4", 1.3),
        Goal("remoting", f"{title}, CPU : plain socket", one, "remoting socket 1", 1.0, "cpu"),
        Goal("remoting", f"{title}, 256 in flight : 4 threads", "remoting async", four, None),
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


def lives() -> list[Goal]:
    """Topics of running brokers in Arrow and Spark, beside Java's client, Kafka, and the store with the same rows."""
    ours, title = "live pull rmqfast", "pulling reader into Arrow, 32 a pull"
    goals = pair("live", f"{title} : Java pull consumer", ours, "live pull Java", (4.0, 4.0))
    goals += pair("live", f"{title}, eight columns : Java", "live pull eight", "live pull Java", (None, None))
    for engine, name in (("arrow", "read_topic"), ("source", "data source")):
        title, ours, directory = f"Spark 4.0 {name} of 4.9.4", f"live topic {engine}", f"live store {engine}"
        goals += pair("live", f"{title} : tuned Kafka", ours, "live kafka tuned", (1.2, 1.2))
        goals += pair("live", f"{title} : its store directory", ours, directory, (0.7, 0.7))
        title = f"Spark 4.0 {name}, our broker, 1,024 a pull"
        goals += pair("live", f"{title} : its store directory", f"live own {engine}", directory, (0.7, 0.7))
    title, eight = "Spark 4.0 read_topic of 4.9.4, eight columns", "live topic eight"
    goals += pair("live", f"{title} : tuned Kafka", eight, "live kafka tuned", (None, None))
    goals += pair("live", f"{title} : its store directory", eight, "live store eight", (None, None))
    title, columnar = "Spark 4.0 read_topic of 4.9.4 : columnar read of its store", "live store columnar"
    goals += pair("live", title, "live topic arrow", columnar, (None, None))
    for side in ("RocketMQ", "rmqfast"):
        title, plan = f"{side}: planning 10,000 queues", f"live plan {side}"
        goals.append(Goal("live", title, plan, None, 2.0, "value", "s"))
        goals.append(Goal("live", f"{title} from a time on", f"{plan} since", None, None, "value", "s"))
    for how, title, bound in (("held", "held to a core each", 1.7), ("workers", "not held", None)):
        goals += pair("live", f"2 workers, {title} : 1 worker", f"live {how} 2", f"live {how} 1", (bound, bound))
    return goals


def streams() -> list[Goal]:
    """A stream of our broker beside batch reads of it."""
    title, ours = "stream of our broker, steady state", "stream steady"
    goals = pair("stream", f"{title} : data source, batch", ours, "stream batch", (0.8, 0.8))
    goals += pair("stream", f"{title} : read_topic", ours, "stream batch arrow", (None, None))
    ready = "Spark itself: stream of ready batches : batch"
    goals += pair("stream", ready, "stream ready steady", "stream ready batch", (None, None))
    for at in LABELS:
        title = f"lag of the stream at 20,000 messages/s, a trigger a second, {size(at)}"
        goals.append(Goal("stream", title, f"stream {at} lag", None, 1.0, "value", "triggers"))
        goals.append(Goal("stream", f"{title}, messages", f"stream {at} messages", None, None, "value", ""))
    return goals


QUERIES = {
    "sum": "sum(length(body))",
    "noop": "noop write of eight columns",
    "max": "max(queue_offset)",
    "tag": "tag of 1 %",
}


def first_minutes() -> list[Goal]:
    """What somebody sees first: a consumer whose topic is not there yet, and one that starts."""
    goals = []
    for row, title, bound in (
        ("message", "a topic's first message to a push consumer that waits", 300),
        ("lite start", "a lite pull consumer's start to its first message", 100),
    ):
        ours, java = f"first rmqfast on rmqfast {row}", f"first Java on RocketMQ {row}"
        javas = f"first Java on rmqfast {row}"
        goals += [
            Goal("first", title, ours, None, bound, "value", "ms"),
            Goal("first", f"{title} : Java's on RocketMQ", ours, java, 1.0, "time"),
            Goal("first", f"{title}, on RocketMQ : Java's", f"first rmqfast on RocketMQ {row}", java, 1.0, "time"),
            Goal("first", f"{title}, Java's on rmqfast : on RocketMQ", javas, java, None, "time"),
        ]
    return goals


def all_goals() -> list[Goal]:
    """Every row of the table, in order."""
    return [
        *scans(),
        *appends(),
        *engine(),
        *brokers(),
        *clients(),
        *first_minutes(),
        *round_trips(),
        *sparks(),
        *columnars(),
        *lives(),
        *streams(),
        Goal("memory", "anonymous memory of a large scan", "memory rmqfast", None, 256, "value", "MiB"),
        Goal("growth", "seconds per GiB, large store : small store", "growth large", "growth small", 1.1, "time"),
        Goal("import", "import rmqfast", "import rmqfast", None, 60, "value", "ms"),
        Goal("scan", "memcpy, bytes/s", "memcpy", None, None, unit="B/s"),
    ]
