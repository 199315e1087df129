"""Clusters in this process whose brokers lose messages, stop and come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import rmqfast
from rmqfast import EmbeddedCluster, Message
from rmqfast.client.instance import ClientConfig
from rmqfast.client.ranges import QueueRange, RangePull, RangeRequest
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingClient, RequestCode
from tests.interop.rocketmq import free_ports
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    import pyarrow as pa

SMALL = {
    "mappedFileSizeCommitLog": str(1 << 20),
    "mappedFileSizeConsumeQueue": str(1000 * 20),
    "maxIndexNum": "4000",
    # retention is for tests that ask for it, however full the disk of the machine is
    "diskMaxUsedSpaceRatio": "95",
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


def request(name_server: str, **changes: Any) -> RangeRequest:
    """A request for what its rows are told apart by."""
    wanted: dict[str, Any] = {"group": "tests", "columns": ("queue_id", "queue_offset"), "patience": PATIENCE}
    config = changes.pop("config", ClientConfig(name_server=name_server))
    return RangeRequest(config=config, **wanted | changes)


def range_of(start: int, end: int, queue_id: int = 0, topic: str = "orders") -> QueueRange:
    """A range of the single broker's queue."""
    return QueueRange(MessageQueue(topic, "broker-a", queue_id), start, end)


def offsets(batches: Iterator[pa.RecordBatch]) -> list[int]:
    """Queue offsets as they come."""
    return [offset for batch in batches for offset in batch.column("queue_offset").to_pylist()]


def pulled(wanted: RangeRequest, *ranges: QueueRange) -> list[int]:
    """Queue offsets that a pull gives."""
    return offsets(RangePull(wanted, ranges).batches())
