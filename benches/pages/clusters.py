"""The tables of the broker, the clients, copies of a broker and slaves."""

from __future__ import annotations

from pages.row import Row
from pages.table import Table

_JAVA, _GO, _BINDING = "the Java client", "the Go client", "librocketmq's binding"
_FRAMES = "ready frames over a plain socket"
_MASTER = "behind RocketMQ's master"


def both(what: str, series: str) -> tuple[Row, Row]:
    """A rate of both brokers, and their CPU."""
    ours, theirs = f"broker rmqfast {series} {{}}", f"broker RocketMQ {series} {{}}"
    return Row(what, ours, "RocketMQ", theirs), Row("its CPU a message", ours, "RocketMQ", theirs, "cpu")


def alone(what: str, series: str, unit: str) -> Row:
    """A value of both brokers that has no size of bodies."""
    return Row(what, f"broker rmqfast {series}", "RocketMQ", f"broker RocketMQ {series}", "value", unit)


BROKER = Table(
    (
        *both("sync send, 1 thread", "sync 1"),
        *both("sync send, 4 threads", "sync 4"),
        *both("sync send, 16 threads", "sync 16"),
        *both("async send, 256 in flight", "async"),
        *both("batches of 64", "batch"),
        *both("pull of 32", "pull 32"),
        *both("pull of 1,024", "pull 1024"),
        *both("push of 32, from `start()`", "push 32"),
        Row(
            "99th percentile of a sync send at half load",
            "broker rmqfast p99 {}",
            "RocketMQ",
            "broker RocketMQ p99 {}",
            "time",
        ),
        alone("start until a message is accepted", "start", "ms"),
        alone("memory, idle", "idle", "MiB"),
        alone("one message to 5,000 clients with parked pulls, 99th percentile", "crowd delivery", "ms"),
        alone("memory with them", "crowd memory", "MiB"),
    )
)

_WITHOUT = "the same broker without a ledger"

LEDGER = Table(
    (
        Row("pulls of one message", "ledger with pull 1 {}", _WITHOUT, "ledger without pull 1 {}"),
        Row("its CPU a message", "ledger with pull 1 {}", _WITHOUT, "ledger without pull 1 {}", "cpu"),
        Row("two brokers without a ledger", "ledger again pull 1 {}", _WITHOUT, "ledger without pull 1 {}"),
        Row("pulls of 32", "ledger with pull 32 {}", _WITHOUT, "ledger without pull 32 {}"),
        Row("its CPU a message", "ledger with pull 32 {}", _WITHOUT, "ledger without pull 32 {}", "cpu"),
        Row("two brokers without a ledger", "ledger again pull 32 {}", _WITHOUT, "ledger without pull 32 {}"),
        Row("memory of a million pulls, 3,000 groups", "ledger memory 3,000 groups", kind="value", unit="MiB"),
        Row("file of a million pulls, 3,000 groups", "ledger file 3,000 groups", kind="value", unit="MiB"),
        Row("memory, each pull by another client", "ledger memory a row each", kind="value", unit="MiB"),
        Row("file, at most 100,000 rows", "ledger file a row each", kind="value", unit="MiB"),
    ),
    goals=True,
)

OPERATE = Table(
    (
        Row("snapshot: 15 requests", "operate snapshot", kind="value", unit="s"),
        Row(
            "`rmqfast group list`", "operate list rmqfast", "`mqadmin consumerProgress`", "operate list mqadmin", "time"
        ),
        Row("`rmqfast group show`, 20 members that do not answer", "operate show silent", kind="value", unit="s"),
        Row("a scrape of `rmqfast exporter`", "operate scrape", kind="value", unit="s"),
        Row("samples in it", "operate samples", kind="value", unit=""),
        Row("requests a second at a broker for it", "operate requests", kind="value", unit=""),
        Row("`rmqfast doctor`", "operate doctor", kind="value", unit="s"),
        Row("a page of `rmqfast dashboard`: all groups", "operate page", kind="value", unit="ms"),
        Row("its memory", "operate page memory", kind="value", unit="MiB"),
        Row("its first content in Chromium", "operate page paint", kind="value", unit="ms"),
        Row("20,000 messages a second beside it", "operate beside dashboard", "without it", "operate beside none"),
        Row("a conflict is told by `rmqfast alarms`", "operate conflict alarm", kind="value", unit="s"),
        Row("the same", "operate conflict alarm", "`mqadmin consumerStatus`", "operate conflict mqadmin", "time"),
    ),
    goals=True,
)

CLIENTS = Table(
    (
        Row("sync send, 1 thread", "client rmqfast sync 1 {}", _JAVA, "client Java sync 1 {}"),
        Row("", "client rmqfast sync 1 {}", _GO, "client Go sync 1 {}"),
        Row("", "client rmqfast sync 1 {}", _BINDING, "client binding sync 1 {}"),
        Row("sync send, 4 threads", "client rmqfast sync 4 {}", _JAVA, "client Java sync 4 {}"),
        Row("", "client rmqfast sync 4 {}", _GO, "client Go sync 4 {}"),
        Row("", "client rmqfast sync 4 {}", _BINDING, "client binding sync 4 {}"),
        Row("async send, 256 in flight", "client rmqfast async {}", _JAVA, "client Java async {}"),
        Row("", "client rmqfast async {}", _GO, "client Go async {}"),
        Row("the same to this broker", "client own async {}", "the Java client on RocketMQ's", "client Java async {}"),
        Row("batches of 64", "client rmqfast batch {}", _FRAMES, "client bare batch {}"),
        Row(
            "batches of 64 rows of Arrow, four in flight",
            "client rmqfast columns {}",
            _FRAMES,
            "client bare columns {}",
        ),
        Row(
            "lite pull into Arrow, 32 a pull",
            "client rmqfast pull 32 {}",
            "the Java pull consumer",
            "client Java pull 32 {}",
        ),
        Row("the same from this broker, 1,024 a pull", "client own pull 1024 {}"),
        Row("push, a listener of 32 messages, from this broker", "client own push 32 {}"),
        Row("the same from RocketMQ's", "client rmqfast push 32 {}"),
        Row("push, a listener of one message, from this broker", "client own push 1 {}"),
        Row("the same from RocketMQ's", "client rmqfast push 1 {}"),
        Row("memory, a million messages before a slow listener", "client rmqfast waiting {}", kind="value", unit="MiB"),
    )
)

MIRROR = Table(
    (
        Row(
            "copy of the log alone, without queues and index",
            "mirror log {}",
            "a socket that drops it",
            "mirror bare {}",
        ),
        Row("", "mirror log {}", "a socket that writes it to a file", "mirror written {}"),
        Row("`rmqfast mirror`, with queues and index", "mirror lists {}", "a socket that drops it", "mirror bare {}"),
        Row("the master's CPU for a row of it", "mirror lists {}", "pulls of the same rows", "mirror pulls {}", "cpu"),
        Row("", "mirror lists {}", "a socket that drops it", "mirror bare {}", "cpu"),
        Row(
            "age of the newest message at 20,000 messages/s",
            "mirror lag {} mirror",
            "a bare follower beside it",
            "mirror lag {} bare",
            "value",
            "ms",
        ),
    ),
    goals=True,
)

SLAVES = Table(
    (
        Row("the slave catches up", "slaves rmqfast catch up {}", _MASTER, "slaves RocketMQ catch up {}"),
        Row("the master's CPU for a row", "slaves rmqfast catch up {}", _MASTER, "slaves RocketMQ catch up {}", "cpu"),
        Row(
            "sends that wait for the slave (`SYNC_MASTER`), 16 threads of a Java producer",
            "slaves rmqfast sync 16 {}",
            _MASTER,
            "slaves RocketMQ sync 16 {}",
        ),
    ),
    goals=True,
)
