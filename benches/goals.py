"""The goals: which figure of which group is held against which other, and what the ratio should reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from measurement import Series

LABELS = ("1k", "128")
FIRST, SECOND = LABELS
#: How many batches a stream has had when its memory is looked at.
MARKS = (1_000, 5_000, 10_000)
#: Of the two body sizes.
Bounds = tuple[float | None, float | None]


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


def pair(group: str, title: str, ours: str, peer: str, bounds: Bounds, **more: str) -> list[Goal]:
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


def ledgers() -> list[Goal]:
    """A broker that keeps a ledger of pulls beside the same one that keeps none."""
    goals = []
    for size in (1, 32):
        ours, theirs = f"ledger with pull {size}", f"ledger without pull {size}"
        goals += pair("ledger", f"pulls of {size}, with a ledger : without", ours, theirs, (0.99, 0.99))
        title = f"pulls of {size}, CPU of the broker, with a ledger : without"
        goals += pair("ledger", title, ours, theirs, (None, None), kind="cpu")
        again = f"ledger again pull {size}"
        goals += pair("ledger", f"pulls of {size}, without a ledger : without", again, theirs, (None, None))
    for name in ("3,000 groups", "a row each"):
        title = f"a million pulls, {name}"
        goals.append(Goal("ledger", f"{title}: memory", f"ledger memory {name}", None, 64, "value", "MiB"))
        goals.append(Goal("ledger", f"{title}: file", f"ledger file {name}", None, 64, "value", "MiB"))
    return goals


def operation() -> list[Goal]:
    """What a cluster of 2,000 topics and 3,000 groups on three brokers costs those who look at it."""
    listed = "operate list rmqfast", "operate list mqadmin"
    told = "operate conflict alarm", "operate conflict mqadmin"
    beside = "operate beside dashboard", "operate beside none"
    return [
        Goal("operate", "snapshot of 3,000 groups", "operate snapshot", None, 1.5, "value", "s"),
        Goal("operate", "group list : mqadmin consumerProgress", *listed, None, "time"),
        Goal("operate", "group show, 20 silent members", "operate show silent", None, 4, "value", "s"),
        Goal("operate", "a scrape of the exporter", "operate scrape", None, 1, "value", "s"),
        Goal("operate", "samples in it", "operate samples", None, None, "value", ""),
        Goal("operate", "requests a second at a broker", "operate requests", None, 20, "value", ""),
        Goal("operate", "doctor of 3,000 groups", "operate doctor", None, 10, "value", "s"),
        Goal("operate", "a page of the dashboard", "operate page", None, 20, "value", "ms"),
        Goal("operate", "memory of the dashboard", "operate page memory", None, 120, "value", "MiB"),
        Goal("operate", "first content in Chromium", "operate page paint", None, 300, "value", "ms"),
        Goal("operate", "20,000 messages/s beside it : without", *beside, 0.97),
        Goal("operate", "a conflict is told by an alarm", "operate conflict alarm", None, 40, "value", "s"),
        Goal("operate", "a conflict is told : mqadmin", *told, None, "time"),
    ]


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


def scans() -> list[Goal]:
    """Scans to Arrow in one process."""
    whole, peer = "scan rmqfast", "scan RocketMQ decoded"
    return [
        *pair("scan", "scan to Arrow : bare Rust loop", whole, "scan bare Rust loop", (0.8, 0.8)),
        *pair("scan", "scan to Arrow : getMessage and decode", whole, peer, (2.0, 2.0)),
        *pair("scan", "scan, CRC checked : not checked", "scan rmqfast CRC", whole, (1.25, 1.25), kind="time"),
        *pair("scan", "scan without body and properties : with", "scan rmqfast narrow", "scan rmqfast all", (1.4, 1.4)),
        *pair("scan", "scan with the properties : without", "scan rmqfast all", whole, (0.7, 0.7)),
        *pair("scan", "scan of eight columns : bare Rust loop", f"{whole} eight", "scan bare Rust loop", (None, None)),
        *pair("scan", "scan to Arrow, mapped : bare Rust loop", f"{whole} mapped", "scan bare Rust loop", (None, None)),
        *pair("scan", "eight columns, leased : bare Rust loop", f"{whole} leased", "scan bare Rust loop", (0.85, 0.7)),
        *pair("tag", "tag scan, 1 % hits : getMessage with the tag", "tag rmqfast", "tag RocketMQ", (3.0, 3.0)),
        *pair("tag", "tag scan, leased : getMessage with the tag", "tag rmqfast leased", "tag RocketMQ", (3.0, 3.0)),
        *pair("tag", "tag scan, mapped : getMessage with the tag", "tag rmqfast mapped", "tag RocketMQ", (3.0, 3.0)),
    ]


def queries() -> list[Goal]:
    """SQL and lazy frames over a topic: at most 1 / 0.8 of the CPU of a scan by hand."""
    hand, groups, parquet = "query by hand", "query groups", "query groups Parquet"
    return [
        *pair("query", "DuckDB, tag of 1 % : scan by hand, CPU", "query DuckDB", hand, (1.25, 1.25), kind="cpu"),
        *pair("query", "Polars, tag of 1 % : scan by hand, CPU", "query Polars", hand, (1.25, 1.25), kind="cpu"),
        *pair("query", "DuckDB, group by tags : Parquet, time", groups, parquet, (1.2, None), kind="time"),
    ]


def decodes() -> list[Goal]:
    """Bodies of JSON of 1 KiB as columns in Spark: at most a third of the CPU of `from_json`."""
    return [
        Goal(
            "decode",
            f"JSON, {words} : from_json, CPU",
            f"decode scan {query}",
            f"decode from_json {query}",
            1 / 3,
            "cpu",
        )
        for query, words in (("one", "one field"), ("three", "three fields"), ("all", "all fields"))
    ]


def ingests() -> list[Goal]:
    """Tables from a store: what they cost beyond the scan is at most 1 / 0.9 of the same rows written from memory."""
    goals = []
    for form, library in (("parquet", "pyarrow"), ("delta", "deltalake"), ("iceberg", "pyiceberg")):
        title = f"ingest to {form.title()}, CPU"
        beyond, memory = f"ingest {form} beyond scan", f"ingest {library}"
        goals += pair("ingest", f"{title} beyond the scan : {library}", beyond, memory, (1.11, None), kind="cpu")
        goals += pair("ingest", f"{title} : {library}", f"ingest {form}", memory, (None, None), kind="cpu")
    return [
        *goals,
        Goal("ingest", "row groups of 50 topics, a row group", "ingest row groups", None, 32, unit="MiB"),
        Goal("ingest", "anonymous memory of a large ingest", "ingest memory", None, 400, "value", "MiB"),
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
    """The columnar source of a live topic beside the Python source, tuned Kafka and what Spark and the pull cost alone.

    A series of a batch has rows a second behind the start of a job as its rate, and that start in ms as its value.
    """
    goals = []
    sums, alls = "sum(length(body)) of eight columns", "noop write of all columns"
    wanted: tuple[tuple[str, str, str, float | None, float | None, Bounds], ...]
    wanted = (
        ("sum", "4.3", sums, 2.0, 0.357, (None, None)),
        ("noop", "4.3", alls, None, None, (None, None)),
        ("sum-4.0", "4.0", sums, 2.5, 0.357, (3.0, 2.5)),
        ("noop-4.0", "4.0", alls, None, None, (2.0, 1.3)),
    )
    for name, spark, title, faster, cpu, kafka in wanted:
        cell, what = f"live {name}", f"Spark {spark}, {title}"
        jvm, python, tuned = f"{cell} JVM", f"{cell} Python", f"{cell} Kafka"
        goals += pair("live", f"{what}: JVM : Python source", jvm, python, (faster, faster))
        goals += pair("live", f"{what}, CPU: JVM : Python source", jvm, python, (cpu, cpu), kind="cpu")
        goals += pair("live", f"{what}: JVM : tuned Kafka", jvm, tuned, kafka)
        goals += pair("live", f"{what}: Python source : tuned Kafka", python, tuned, (None, None))
        if name.startswith("noop"):
            goals += pair("live", f"{what}: JVM : ready vectors", jvm, f"{cell} ready", (None, None))
            goals += pair("live", f"{what}: ready vectors : tuned Kafka", f"{cell} ready", tuned, (None, None))
        goals += [
            alone(f"{what}: start of a job, {side}", f"{cell} {side}", at, None, "ms")
            for side in ("JVM", "Python", "Kafka")
            for at in LABELS
        ]
    what = "Spark 4.3, sum(length(body)) of eight columns"
    goals += pair("live", f"{what}: JVM : the pull alone", "live sum JVM", "live sum pull", (0.8, 0.8))
    goals += pair("live", f"{what}: JVM : ready vectors", "live sum JVM", "live sum ready", (None, None))
    what, cell = "a cluster scan into Arrow", "live arrow"
    goals += pair("live", f"{what}, eight columns : the pull alone", f"{cell} scan", f"{cell} pull", (0.9, 0.9))
    goals += pair("live", f"{what}, all columns : the pull alone", f"{cell} all", f"{cell} pull", (None, None))
    title, cell = "RocketMQ 4.9.4, 32 a pull, sum(length(body)): JVM : the pull alone", "live sum-4.9.4"
    goals += pair("live", title, f"{cell} JVM", f"{cell} pull", (0.85, 0.85))
    title, cell = "Spark 4.0, RocketMQ 4.9.4, sum(length(body)) out of the log over the wire", "live log"
    sides: tuple[tuple[str, str, Bounds], ...]
    sides = (
        ("tuned Kafka", "Kafka", (1.6, 2.5)),
        ("pulls", "pulls", (3.0, 5.0)),
        ("its directory", "store", (0.9, 0.9)),
    )
    for other, series, bounds in sides:
        goals += pair("live", f"{title} : {other}", f"{cell} log", f"{cell} {series}", bounds)
    what = "Spark 4.0, a mirror of RocketMQ 4.9.4 from nothing, then sum(length(body)) : tuned Kafka"
    goals += pair("live", what, f"{cell} mirror", f"{cell} Kafka", (1.3, 1.8))
    goals += pair("live", f"{title} : a bare socket", f"{cell} log", f"{cell} socket", (None, None))
    for sink, title in (("write", "our broker"), ("write-4.9.4", "RocketMQ 4.9.4")):
        jvm, python = f"live {sink} JVM", f"live {sink} Python"
        goals += pair("live", f"DataFrame into {title}: JVM : Python sink", jvm, python, (None, None))
        goals += pair("live", f"DataFrame into {title}: JVM : ready requests", jvm, f"live {sink} frames", (None, None))
        goals += pair("live", f"DataFrame into {title}, CPU: JVM : Python sink", jvm, python, (None, None), kind="cpu")
    return goals + live_streams()


def slaves() -> list[Goal]:
    """A slave of RocketMQ 4.9.4 behind our master, beside one behind RocketMQ's; CPU is the master's."""
    what, ours, theirs = "RocketMQ's slave catches up", "slaves rmqfast catch up", "slaves RocketMQ catch up"
    goals = pair("slaves", f"{what}: our master : RocketMQ's", ours, theirs, (1.0, 1.0))
    goals += pair("slaves", f"{what}, CPU: our master : RocketMQ's", ours, theirs, (0.3, 0.3), kind="cpu")
    what, ours, theirs = "sync sends with a slave, 16 threads", "slaves rmqfast sync 16", "slaves RocketMQ sync 16"
    return goals + pair("slaves", f"{what}: our master : RocketMQ's", ours, theirs, (1.5, 1.5))


def mirrors() -> list[Goal]:
    """A copy of a real broker's log beside a socket that drops it; CPU is the master's."""
    goals = pair("mirror", "mirror, the log alone : a socket that drops it", "mirror log", "mirror bare", (0.8, 0.8))
    title = "mirror, the log alone : a socket that writes it to a file"
    goals += pair("mirror", title, "mirror log", "mirror written", (None, None))
    goals += pair(
        "mirror", "mirror, queues and index : a socket that drops it", "mirror lists", "mirror bare", (0.5, 0.5)
    )
    title = "mirror, the master's CPU : pulls of the same rows"
    goals += pair("mirror", title, "mirror lists", "mirror pulls", (0.2, 0.2), kind="cpu")
    for at in LABELS:
        title = f"mirror, age of the newest message at 20,000/s, beside {size(at)} of old ones"
        goals += [
            Goal("mirror", title, f"mirror lag {at} mirror", None, None, kind="value", unit="ms"),
            Goal("mirror", f"{title}: bare follower", f"mirror lag {at} bare", None, None, kind="value", unit="ms"),
        ]
    return goals


def live_streams() -> list[Goal]:
    """Streams of a live topic; the value of a series is ms from trigger to trigger."""
    goals, stream, large = [], "live stream", "live large"
    for files, manager, bound in (("", "default checkpoint files", 1.8), (" files", "FileSystemBased files", 2.0)):
        what = f"stream of 131,072 rows a batch, {manager}"
        jvm, python = f"{stream} JVM{files}", f"{stream} Python{files}"
        goals += pair("live", f"{what}: JVM : Python source", jvm, python, (bound, bound))
        goals += pair("live", f"{what}, CPU: JVM : Python source", jvm, python, (None, None), kind="cpu")
        goals += pair("live", f"{what}: JVM : ready vectors", jvm, f"{stream} ready{files}", (None, None))
        goals += [alone(f"{what}: JVM, a batch", jvm, at, None, "ms") for at in LABELS]
    what = "stream of 1,048,576 rows a batch"
    goals += pair("live", f"{what}: JVM : its batch read", f"{large} JVM", f"{large} batch", (0.8, 0.5))
    goals += pair("live", f"{what}: JVM : ready vectors", f"{large} JVM", f"{large} ready", (None, None))
    what = "lag at 50,000 messages/s, a trigger a second"
    goals += [alone(f"{what}, JVM", "live lag JVM", at, 0.3, "triggers") for at in LABELS]
    goals += [alone(f"{what}, Python source", "live lag Python", at, None, "triggers") for at in LABELS]
    return goals + few_rows() + ages() + held()


def few_rows() -> list[Goal]:
    """Batches of a stream that have next to nothing in them, of one size of bodies."""
    goals = []
    bounds = {"live few JVM": 1.05}
    for files, manager in (("", "default checkpoint files"), (" files", "FileSystemBased files")):
        rate = f"live few rate{files} {FIRST}"
        for side in ("JVM", "Python"):
            what, ours = f"nearly empty batch, {manager}: {side}", f"live few {side}{files}"
            goals.append(Goal("live", f"{what} : rate-micro-batch", f"{ours} {FIRST}", rate, bounds.get(ours), "time"))
            goals.append(alone(what, ours, FIRST, None, "ms"))
    title, ours = "nearly empty batch, JVM: FileSystemBased files : default checkpoint files", "live few JVM"
    return [*goals, Goal("live", title, f"{ours} files {FIRST}", f"{ours} {FIRST}", 0.4, "time")]


def ages() -> list[Goal]:
    """Age of rows in Spark's Real-Time Mode."""
    title, series = "Real-Time Mode, 10,000/s, batches of 30 s", "live real-time"
    figures: tuple[tuple[str, str, float | None], ...] = (
        ("p50", "median age of a row", 1.0),
        ("p99", "99th percentile", 10.0),
        ("p999", "99.9th percentile", None),
        ("gap", "longest gap between batches", 60.0),
    )
    return [
        Goal("live", f"{title}{how}: {what}{of}", f"{series} {side}{files} {FIRST} {age}", None, bound, "value", "ms")
        for files, how in (("", ""), (" files", ", FileSystemBased files"))
        for age, what, most in figures
        for side, of, bound in (("JVM", "", most), ("ready", ", of Spark alone", None))
    ]


def held() -> list[Goal]:
    """Memory of a stream's JVM after thousands of nearly empty batches, beside Spark's own source."""
    return [
        Goal("live", f"{side}, {what} after {mark:,} batches", f"{series} {key}-{mark}", None, None, "value", unit)
        for side in ("rate", "JVM")
        for series in (f"live endurance {side} {SECOND}",)
        for key, what, unit in (
            ("heap", "heap", "MiB"),
            ("resident", "memory", "MiB"),
            ("threads", "threads", ""),
            ("connections", "connections of all to the broker", ""),
        )
        for mark in MARKS
    ]


def alone(title: str, ours: str, at: str, bound: float | None, unit: str) -> Goal:
    """The value of one side for a body size."""
    return Goal("live", f"{title}, {size(at)}", f"{ours} {at}", None, bound, "value", unit)


def clusters() -> list[Goal]:
    """The planning of many queues, and workers of a standalone cluster."""
    goals = []
    for side in ("RocketMQ", "rmqfast"):
        title, plan = f"{side}: planning 10,000 queues", f"cluster plan {side}"
        goals.append(Goal("cluster", title, plan, None, 2.0, "value", "s"))
        goals.append(Goal("cluster", f"{title} from a time on", f"{plan} since", None, None, "value", "s"))
    for how, title, bound in (("held", "held to a core each", 1.7), ("workers", "not held", None)):
        ours, peer = f"cluster {how} 2", f"cluster {how} 1"
        goals += pair("cluster", f"2 workers, {title} : 1 worker", ours, peer, (bound, bound))
    return goals


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
        *queries(),
        *decodes(),
        *ingests(),
        *appends(),
        *engine(),
        *brokers(),
        *ledgers(),
        *operation(),
        *clients(),
        *sparks(),
        *columnars(),
        *lives(),
        *mirrors(),
        *slaves(),
        *clusters(),
        Goal("memory", "anonymous memory of a large scan", "memory rmqfast", None, 256, "value", "MiB"),
        Goal("growth", "seconds per GiB, large store : small store", "growth large", "growth small", 1.1, "time"),
        Goal("import", "import rmqfast", "import rmqfast", None, 60, "value", "ms"),
        Goal("scan", "memcpy, bytes/s", "memcpy", None, None, unit="B/s"),
    ]
