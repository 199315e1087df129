"""Attacks on the disk, and on the time of a restart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.attack.figures import Figure, Scale, milliseconds
from tests.broker.interop.cluster import Cluster, OurCluster
from tests.broker.live_server import Wire, send_fields


def many_queues(cluster: Cluster, scale: Scale) -> list[Figure]:
    """One message in each of many queues."""
    with Wire(cluster.broker) as wire:
        for number in range(scale.queues):
            topic, queue = divmod(number, 4)
            header, _ = wire.ask(310, send_fields(f"queues-{topic}", queue), b"x")
            assert header["code"] == 0, header
    used = sum(allocated(cluster.store / name) for name in ("consumequeue", "index")) / 1e6
    return [Figure(f"disk of {scale.queues:,} queues with a message each", used, "MB", 200, is_time=False)]


def allocated(directory: Path) -> int:
    """Bytes of the blocks of all files below a directory."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*"))


#: Starts a broker in a process whose interpreter and imports are there.
_STARTED = """
import sys, time
from rmqfast.broker import Broker, BrokerConfig
config = BrokerConfig({"storePathRootDir": sys.argv[1], "listenPort": "0"})
begun = time.perf_counter()
with Broker(config):
    print(time.perf_counter() - begun)
"""


def restart(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """One message, a clean stop or a kill, and a start again."""
    figures = []
    with Wire(cluster.broker) as wire:
        assert wire.ask(310, send_fields("one"), b"x")[0]["code"] == 0
    for how, end in (("stop", cluster.stop), ("kill -9", cluster.kill9)):
        end()
        seconds = milliseconds(cluster.start) / 1000
        figures.append(Figure(f"start with one message behind a {how}, with the interpreter's", seconds, "s", 0.8))
    if isinstance(cluster, OurCluster):
        cluster.kill9()
        for how in ("kill -9", "stop"):
            command = [sys.executable, "-c", _STARTED, str(cluster.store)]
            seconds = float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            figures.append(Figure(f"start with one message behind a {how}, the broker's part", seconds, "s", 0.3))
    return figures
