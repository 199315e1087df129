"""Bodies that are far longer than what they ask for needs, and connections that speak no RocketMQ."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from rmqfast.remoting import RequestCode
from tests.attack.figures import Figure, Scale, memory
from tests.broker.interop.cluster import Cluster
from tests.broker.live_server import Wire
from tests.broker.mutations import json_frame

_BODY = 15 << 20


def large_bodies(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """15 MB with each request code at the broker, which is asked nothing else meanwhile."""
    before = memory(cluster)
    answers = [_refused(cluster.broker, int(code)) for code in RequestCode]
    slowest, taken = max(took for took, _ in answers), sum(code == 0 for _, code in answers)
    return [
        Figure("15 MB to any code: refused within", slowest, "ms", 10),
        Figure("15 MB to any code: memory", memory(cluster) - before, "MiB", 1, is_time=False),
        Figure("15 MB to any code: taken", taken, "codes", 0, is_time=False),
    ]


def _refused(address: str, code: int) -> tuple[float, int]:
    """Milliseconds until a request is answered of which no byte of the body was sent, and the code; -1 for an end."""
    frame = json_frame(code, {}, bytes(_BODY))
    with Wire(address) as wire:
        begun = time.perf_counter()
        wire.socket.sendall(frame[: len(frame) - _BODY])
        try:
            answer = int(wire.answer()[0]["code"])
        except OSError:
            answer = -1
        return (time.perf_counter() - begun) * 1000, answer


def bad_connections(cluster: Cluster, scale: Scale) -> list[Figure]:
    """Connections whose first bytes are no frame, one after the other."""
    log = cluster.directory / "server.log"
    before = log.read_text(errors="replace").count("\n")
    host, _, port = cluster.broker.rpartition(":")
    for _ in range(scale.connections):
        with socket.create_connection((host, int(port))) as connection, suppress(OSError):
            connection.sendall(b"\xff" * 8)
            connection.recv(1)
    lines = log.read_text(errors="replace").count("\n") - before
    return [Figure(f"{scale.connections:,} bad connections: lines in the log", lines, "", 100, is_time=False)]
