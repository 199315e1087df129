"""A broker that is killed on a full disk."""

from __future__ import annotations

import json
from pathlib import Path

from tests.attack.figures import Figure, Scale
from tests.broker.interop.cluster import Cluster
from tests.store.small_disk import on_small_disk

_MEGABYTES = 64
_KILLED = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.attack.figures import milliseconds
from tests.broker.harmed_files import TOPIC, pulled
from tests.broker.live_server import LiveServer, Wire, send_fields
from tests.waiting import until

disk = Path(sys.argv[1])
ballast = disk / "ballast"
bodies = []

def send(wire):
    body = b"%d;" % len(bodies) * 100
    header, _ = wire.ask(310, send_fields(TOPIC), body)
    if header["code"] == 0:
        bodies.append(body)
    return header["code"] == 0

with LiveServer(disk / "server", {"mappedFileSizeCommitLog": "4194304"}) as server:
    with Wire(server.broker) as wire:
        until(lambda: send(wire) and len(bodies) == 1000)
        fill(ballast)
        until(lambda: not send(wire))
    server.kill9()
    fill(ballast)
    start = milliseconds(server.start) / 1000
    with Wire(server.broker) as wire:
        found, _ = pulled(wire, 0)
        lost = len(set(bodies) - set(found))
        assert not send(wire), "the disk is full"
        os.truncate(ballast, 0)
        room = milliseconds(lambda: until(lambda: send(wire))) / 1000
        found, _ = pulled(wire, 0)
        lost += len(set(bodies) - set(found))
print(json.dumps({"start": start, "room": room, "lost": lost}))
"""


def killed_on_a_full_disk(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """A server on a file system of its own, which is filled: killed, started for reads, given room."""
    root = Path(__file__).parents[2]
    told = json.loads(on_small_disk(_KILLED, _MEGABYTES, cluster.directory, root))
    what = "killed on a full disk: "
    return [
        Figure(f"{what}start, reads are answered", told["start"], "s", 2),
        Figure(f"{what}room is made, a send is taken", told["room"], "s", 2),
        Figure(f"{what}acknowledged and lost", told["lost"], "", 0, is_time=False),
    ]
