"""Clusters in this process whose brokers lose messages, stop and come back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import rmqfast
from rmqfast import EmbeddedCluster, Message
from rmqfast._native import RangeReader, TopicRead
from rmqfast.client.instance import ClientConfig
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.spark.live.task import batches_of
from tests.disks import ROOMY
from tests.interop.rocketmq import free_ports
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    import pyarrow as pa

SMALL = ROOMY | {
    "mappedFileSizeCommitLog": str(1 << 20),
    "mappedFileSizeConsumeQueue": str(1000 * 20),
    "maxIndexNum": "4000",
    # retention is for tests that ask for it, however full the disk of the machine is
    "cleanFileForciblyEnable": "false",
}


class RestartableCluster:
    """A name server and a broker that come back on the same ports with the same store."""

    def __init__(self, directory: Path, **config: str) -> None:
        self._directory, self._config, self._ports = directory, SMALL | config, free_ports(2)
        self.running: EmbeddedCluster | None = None

    @property
    def name_server(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self._ports[1]}"

    def start(self) -> None:
        self.running = EmbeddedCluster(
            self._directory,
            name_server_port=self._ports[0],
            broker_port=self._ports[1],
            config=self._config,
        ).start()

    def stop(self) -> None:
        if self.running is not None:
            self.running.stop()
        self.running = None

    def move(self) -> None:
        """Comes back, its broker at another port."""
        self.stop()
        (port,) = free_ports(1)
        self._ports = [self._ports[0], port]
        self.start()

    def create(self, topic: str, queues: int = 1) -> None:
        with rmqfast.Admin(name_server=self.name_server) as admin:
            admin.create_topic(topic, queues=queues)

    def fill(self, topic: str, count: int, size: int = 1000) -> None:
        """Messages of two tags in turn."""
        with rmqfast.Producer("tests", name_server=self.name_server) as producer:
            producer.send_many([Message(topic, bytes(size), tags=("A", "B")[i % 2]) for i in range(count)])

    def expire(self) -> None:
        """Retention: all files but the last go, where `fileReservedTime` is 0."""
        with RemotingClient(self.broker, timeout=PATIENCE) as client:
            client.ask(RequestCode.DELETE_EXPIRED_COMMITLOG)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class QueueRange(NamedTuple):
    """Offsets of a queue from `start` to before `end`."""

    queue: MessageQueue
    start: int
    end: int


#: The first byte of a piece: its version.
PIECE_VERSION = b"\x05"


class PieceRead:
    """A piece that no driver planned, read as a Spark task reads it."""

    def __init__(self, read: TopicRead, ranges: Sequence[QueueRange], address: str | None = None) -> None:
        parts = [(queue.topic, queue.broker_name, queue.queue_id, start, end) for queue, start, end in ranges]
        piece = PIECE_VERSION + json.dumps([address, parts, False, None, None]).encode()
        self._reader = RangeReader.of_piece(read, piece)

    @property
    def rows(self) -> int:
        return self._reader.rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        return batches_of(self._reader)


def request(
    name_server: str,
    *,
    columns: Sequence[str] = ("queue_id", "queue_offset"),
    config: ClientConfig | None = None,
    **options: Any,
) -> TopicRead:
    """A read of `orders` with the options of the data source."""
    named = {"nameServer": name_server, "topic": "orders", "retryTimeoutMs": f"{PATIENCE * 1000:.0f}"}
    texts = {name: json.dumps(value) if name == "keys" else str(value) for name, value in options.items()}
    return TopicRead("topic batch", named | texts, list(columns), config=config)


def range_of(start: int, end: int, queue_id: int = 0, topic: str = "orders") -> QueueRange:
    """A range of the single broker's queue."""
    return QueueRange(MessageQueue(topic, "broker-a", queue_id), start, end)


def offsets(batches: Iterator[pa.RecordBatch]) -> list[int]:
    """Queue offsets as they come."""
    return [offset for batch in batches for offset in batch.column("queue_offset").to_pylist()]


def pulled(wanted: TopicRead, *ranges: QueueRange) -> list[int]:
    """Queue offsets that a pull gives."""
    return offsets(PieceRead(wanted, ranges).batches())
