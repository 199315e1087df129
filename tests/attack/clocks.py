"""A broker that stands still for a minute, and one whose time of day is set."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

from tests.attack.figures import Figure, Scale
from tests.broker.harmed_files import pulled
from tests.broker.interop.cluster import Cluster
from tests.broker.live_server import LiveServer, Wire, send_fields
from tests.broker.test_server_kill import Clients
from tests.waiting import until

_SHIM = Path(__file__).with_name("shifted_clock.c")
_TOPIC = "delayed"
_DELAY = 4.0
#: Seconds: ten days ahead, an hour back, and about where it was.
_STEPS = (864_000, -3_600, -860_400)
_MESSAGES = 50


def paused(cluster: Cluster, scale: Scale) -> list[Figure]:
    """A server of its own is stopped under load, as by a machine that sleeps, and goes on."""
    with LiveServer(cluster.directory.with_name("paused"), {"flushDiskType": "ASYNC_FLUSH"}) as server:
        clients = Clients(server)

        def pause() -> None:
            os.kill(server.pid, signal.SIGSTOP)
            threading.Event().wait(scale.pause)  # the time is what it is about: nothing happens meanwhile
            os.kill(server.pid, signal.SIGCONT)
            before = clients.count()
            until(lambda: clients.count() >= before + 1000)
            server.stop()

        clients.run_until(1000, pause)
        assert clients.errors == []
        server.start()
        lost, twice = clients.lost(), clients.twice()
    what = f"paused for {scale.pause} s under load: acknowledged and"
    return [
        Figure(f"{what} lost", len(lost), "", 0, is_time=False),
        Figure(f"{what} there twice", len(twice), "", 0, is_time=False),
    ]


def clock_set(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """The time of day of a server of its own is set while messages wait for their time."""
    place = cluster.directory.with_name("clock")
    place.mkdir()
    ahead, shim = place / "ahead", place / "shifted_clock.so"
    ahead.write_bytes(struct.pack("=q", 0))
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, _SHIM], check=True)
    server = LiveServer(place / "server", {"messageDelayLevel": f"1h {_DELAY:.0f}s"})
    server.environment = {"LD_PRELOAD": str(shim), "SHIFTED_CLOCK": str(ahead)}
    waits: list[float] = []
    with server, Wire(server.broker) as wire:
        shift = 0
        for step in _STEPS:
            sent: dict[bytes, float] = {}
            for _ in range(_MESSAGES):
                body = b"%d" % (len(waits) + len(sent))
                sent[body] = time.monotonic()
                header, _ = wire.ask(310, send_fields(_TOPIC, properties="DELAY\x012\x02"), body)
                assert header["code"] == 0, header
            shift += step
            ahead.write_bytes(struct.pack("=q", shift * 1_000_000_000))
            waits += _waits(wire, sent)
    what = f"{len(waits)} delayed messages while the time of day is set {len(_STEPS)} times:"
    return [
        Figure(f"{what} early", sum(wait < _DELAY for wait in waits), "", 0, is_time=False),
        Figure(f"{what} the latest one is late by", max(waits) - _DELAY, "s", 1.5),
    ]


def _waits(wire: Wire, sent: dict[bytes, float]) -> list[float]:
    came: dict[bytes, float] = {}

    def have_come() -> bool:
        bodies, _ = pulled(wire, 0, _TOPIC)
        now = time.monotonic()
        for body in bodies:
            came.setdefault(body, now)
        return sent.keys() <= came.keys()

    until(have_come)
    return [came[body] - begun for body, begun in sent.items()]
