"""Clusters in which something is wrong, and what the doctor finds there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rmqfast import Admin, EmbeddedCluster, Message
from rmqfast.client.instance import ClientConfig
from rmqfast.doctor import Diagnosis, Finding, Level, examine_cluster
from rmqfast.message import MessageQueue
from rmqfast.store import AppendOptions, open_store
from tests.broker.interop.frames import JSON, Frame
from tests.disks import ROOMY
from tests.proxy import Passage, Proxy, Stream, frames

#: Settings of which the doctor has nothing to say.
CAREFUL = ROOMY | {"autoCreateTopicEnable": "false", "flushDiskType": "SYNC_FLUSH"}
TOPIC, GROUP = "examined", "patients"
ADVICE = Level.ADVICE


def examine(cluster: EmbeddedCluster, *, watch: float = 0) -> Diagnosis:
    return examine_cluster(name_server=cluster.name_server, watch=watch)


def only(diagnosis: Diagnosis) -> Finding:
    """The finding, if there is only one; and nothing was left out."""
    assert diagnosis.unknown == ()
    (finding,) = diagnosis.findings
    return finding


@contextmanager
def cluster_of(config: Mapping[str, str] | None = None, **more: object) -> Iterator[EmbeddedCluster]:
    """A cluster with careful settings, and others."""
    with EmbeddedCluster(config=CAREFUL | dict(config or {}), **more) as cluster:  # type: ignore[arg-type]
        yield cluster


def write_old_store(path: Path, age: float, *, queues: int = 2) -> None:
    """Writes a store with a message in each queue of the topic, of so many seconds ago."""
    stored_at = int((time.time() - age) * 1000)
    with open_store(path, mode="a", options=AppendOptions(file_size=1 << 20), clock=lambda: stored_at) as store:
        for number in range(queues):
            store.append(Message(TOPIC, b"old", queue_id=number, born_timestamp=stored_at))


@contextmanager
def old_backlog(path: Path, age: float, config: Mapping[str, str] | None = None) -> Iterator[EmbeddedCluster]:
    """A cluster in which a group has not read messages of so many seconds ago."""
    write_old_store(path, age)
    with cluster_of(config, store_dir=path) as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=2)
        admin.create_group(GROUP)
        for number in range(2):
            admin.offsets.reset(GROUP, MessageQueue(TOPIC, "broker-a", number), 0, force=True)
        yield cluster


class OtherStatus(Passage):
    """Lets a broker tell another status of itself."""

    def __init__(self, change: Callable[[bytes], bytes]) -> None:
        self._change = change

    def answers(self, stream: Stream) -> Stream:
        for frame in map(Frame.read, frames(stream)):
            body = self._change(frame.body) if b"brokerVersionDesc" in frame.body else frame.body
            yield Frame(JSON, frame.header, body).written()


@contextmanager
def reached_through(cluster: EmbeddedCluster, change: Callable[[bytes], bytes] = bytes) -> Iterator[ClientConfig]:
    """Settings of a client that reaches the broker through another port, behind which its status is changed."""
    (broker,) = cluster.brokers
    with Proxy(broker.address, lambda _: OtherStatus(change)) as proxy:
        yield ClientConfig(name_server=cluster.name_server, translate_address=lambda _: proxy.address)
