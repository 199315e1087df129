"""All that a busy day brings at once: connections, held pulls, groups, topics."""

from __future__ import annotations

import resource
import socket
import time
from contextlib import ExitStack

from rmqfast.remoting import RemotingClient, RequestCode
from tests.attack.figures import Figure, Scale, memory, milliseconds
from tests.attack.names import create, fill_groups
from tests.broker.interop.cluster import Cluster
from tests.broker.live_server import Wire, pull_fields, send_fields
from tests.broker.mutations import json_frame
from tests.waiting import until

_SENDS = 4_000
_SUSPENDED = 10 * 60 * 1000
_TOPIC = "everything"


def all_at_once(cluster: Cluster, scale: Scale) -> list[Figure]:
    """The 99th of a hundred sends beside all of it, against that of an empty broker; and a restart."""
    _let_open(scale.connections + 1_000)
    with Wire(cluster.broker) as wire:
        assert wire.ask(310, send_fields(_TOPIC), b"x")[0]["code"] == 0
        _p99(wire)
        alone = _p99(wire)
    _fill(cluster, scale)
    with ExitStack() as stack:
        _connect(cluster, scale, stack)
        with Wire(cluster.broker) as wire:
            beside = _p99(wire)
        used = memory(cluster)
    cluster.stop()
    seconds = milliseconds(cluster.start) / 1000
    what = f"{scale.connections:,} connections, {scale.groups:,} groups, {scale.topics:,} topics"
    return [
        Figure(f"{what}: p99 of a send, times that of an empty broker ({alone:.3f} ms)", beside / alone, "", 1.5),
        Figure(f"{what}: restart", seconds, "s", 3),
        Figure(f"{what}: memory", used, "MiB", 1024, is_time=False),
    ]


def _let_open(files: int) -> None:
    """Raises the limit of open files of this process, which the servers it starts have, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, max(soft, files)) if hard != resource.RLIM_INFINITY else max(soft, files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _fill(cluster: Cluster, scale: Scale) -> None:
    with RemotingClient(cluster.broker) as client:
        for number in range(scale.topics):
            create(client, f"all-{number}")
    fill_groups(cluster.broker, scale.groups)


def _connect(cluster: Cluster, scale: Scale, stack: ExitStack) -> None:
    """Opens the connections; every second one asks for messages that are not there, and waits."""
    host, _, port = cluster.broker.rpartition(":")
    fields = pull_fields("all-0", "held", offset=0, sys_flag=6) | {"suspendTimeoutMillis": str(_SUSPENDED)}
    held = json_frame(RequestCode.PULL_MESSAGE, fields)
    for number in range(scale.connections):
        connection = stack.enter_context(socket.create_connection((host, int(port))))
        if number % 2:
            connection.sendall(held)
    with Wire(cluster.broker) as wire:  # whose turn comes behind those of all others
        until(lambda: wire.ask(int(RequestCode.GET_MAX_OFFSET), {"topic": _TOPIC, "queueId": "0"})[0]["code"] == 0)


def _p99(wire: Wire) -> float:
    """Of some thousand sends, one after the other, in milliseconds."""
    fields, took = send_fields(_TOPIC), []
    for _ in range(_SENDS):
        begun = time.perf_counter()
        header, _ = wire.ask(310, fields, b"x" * 100)
        took.append((time.perf_counter() - begun) * 1000)
        assert header["code"] == 0, header
    return sorted(took)[_SENDS * 99 // 100]
