"""A cluster in this process, and what its brokers have stored."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import rmqfast
from rmqfast import EmbeddedCluster, open_store
from rmqfast.broker.ports import ReservedPorts
from rmqfast.errors import UnknownTopicError
from tests.disks import ROOMY

SMALL = ROOMY | {
    "mappedFileSizeCommitLog": str(32 << 20),
    "mappedFileSizeConsumeQueue": str(50_000 * 20),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "messageDelayLevel": "1s 2s 3s",
}
_numbers = itertools.count()
Row = dict[str, Any]


class Scene:
    """An embedded cluster whose stores stay through a restart, and the ports of its name server and single broker."""

    def __init__(self, directory: Path, config: Mapping[str, str] | None = None, brokers: int = 1) -> None:
        self._directory, self._config, self._brokers = directory, {**SMALL, **(config or {})}, brokers
        # for as long as this is: nobody else gets them while the cluster is down
        self._ports = ReservedPorts("127.0.0.1"), ReservedPorts("127.0.0.1")
        self._cluster: EmbeddedCluster | None = None

    @property
    def name_server(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self._ports[0].port}"

    @property
    def cluster(self) -> EmbeddedCluster:
        """It runs."""
        assert self._cluster is not None
        return self._cluster

    def start(self) -> None:
        """Starts it, or starts it again."""
        self._cluster = EmbeddedCluster(
            self._directory,
            brokers=self._brokers,
            name_server_port=self._ports[0].port,
            broker_port=self._ports[1].port if self._brokers == 1 else 0,
            config=self._config,
        ).start()

    def stop(self) -> None:
        """Stops it; what is stored stays."""
        if self._cluster is not None:
            self._cluster.stop()
            self._cluster = None

    def topic(self, name: str = "sink", queues: int = 4) -> str:
        """A topic of its own."""
        topic = f"{name}-{next(_numbers)}"
        with rmqfast.Producer("scene", name_server=self.name_server) as producer:
            producer.create_topic(topic, queues)
        return topic

    def stored(self, topic: str) -> list[Row]:
        """The rows of a topic, in the order in which brokers stored them."""
        rows: list[Row] = []
        names = [self._directory] if self._brokers == 1 else sorted(self._directory.glob("broker-*"))
        for path in names:
            with open_store(path) as store:
                try:
                    found = store.scan(topic).to_arrow().to_pylist()
                except UnknownTopicError:
                    continue
            rows += [row | {"broker_name": path.name, "properties": dict(row["properties"])} for row in found]
        return rows

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for held in self._ports:
            held.release()
