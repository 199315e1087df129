"""Apache Kafka as a peer: one broker in KRaft mode on the loopback, with topics filled from the bench stores."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType
from typing import Self

from data import QUEUES, Dataset, require_disk, scratch_dir, store
from peer import Failed
from processes import stop
from rocketmq import build, java

PATIENCE = 60.0

CONFIGURATION = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={logs}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.bytes=1073741824
"""


class Kafka:
    """A running broker with an empty log directory; `directory` holds its configuration, data and output."""

    def __init__(self) -> None:
        self.directory = scratch_dir() / "kafka"
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "data").mkdir(parents=True)
        broker, controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{broker}"
        configuration = self.directory / "server.properties"
        configuration.write_text(
            CONFIGURATION.format(broker=broker, controller=controller, logs=self.directory / "data")
        )
        self._format(configuration)
        with (self.directory / "output").open("wb") as output:
            command = java("kafka", "1g", "kafka.Kafka", str(configuration))
            self._server = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        try:
            self._wait(broker)
        except BaseException:
            self.close()
            raise

    def fill(self, dataset: Dataset) -> str:
        """Copies a dataset's store into a topic of the same shape; returns the topic."""
        topic = f"bench_{dataset.label}"
        require_disk(dataset.rows * (dataset.body + 60))
        command = java("kafka", "1g", "bench.TopicFill", self.bootstrap, topic, str(QUEUES), str(store(dataset)))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"filling {topic}: {done.stderr.strip()[-300:]}")
        filled = json.loads(done.stdout)["rows"]
        if filled != dataset.rows:
            raise Failed(f"filling {topic}: expected {dataset.rows} rows, got {filled}")
        return topic

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def close(self) -> None:
        """Stops the broker and removes its data."""
        stop(self._server)
        shutil.rmtree(self.data, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _format(self, configuration: Path) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # in one word: one of 64 of these names begins with a hyphen
        tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(configuration))
        done = subprocess.run(java("kafka", "256m", *tool), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"formatting Kafka's storage: {(done.stdout + done.stderr).strip()[-300:]}")

    def _wait(self, port: int) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise Failed(f"Kafka does not listen on {port} within {PATIENCE:.0f} s, see {self.directory / 'output'}")


def connector_jars(spark: str) -> str:
    """The Kafka source for a version of Spark and what it needs, as a class path."""
    # 4.2.0 is the last one that can be had; it runs in 4.3, too
    version = "4.0.0" if spark.startswith("4.0.") else "4.2.0"
    return ":".join(sorted(str(jar) for jar in (build("connector", version) / "lib").glob("*.jar")))


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on just now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
