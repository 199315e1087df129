"""Planning time of Spark's driver with very many queues."""

from __future__ import annotations

import time
from functools import partial

from broker import wire
from broker.sides import Side
from live.peers import RAISED, attempted, reader
from measurement import Effort, Series, checked, take
from peer import Answer, Failed, Peer

PLANNED = 10_000
PATIENCE = 120.0
#: A file of a consume queue is small, as there are 10,000 of them; sends may wait while those are made.
MANY = ("mappedFileSizeConsumeQueue=20000", "waitTimeMillsInSendQueue=60000")


def planning(kind: type[Side], effort: Effort) -> list[Series]:
    """Seconds until Spark's driver knows what to read of 10,000 queues: whole, and from a time on."""
    names = [f"cluster plan {kind.name}", f"cluster plan {kind.name} since"]
    series = [Series(name) for name in names]

    def measure() -> list[Series]:
        since = int(time.time() * 1000) - 1000
        with kind((*RAISED, *MANY)) as side, reader() as peer:
            fill(side, peer)
            for _ in range(effort.repeat):
                for one, more in zip(series, ((), (since,)), strict=True):
                    if one.missing is None:
                        take(one, partial(planned, peer, side, *more))
        return series

    return attempted(names, measure)


def planned(peer: Peer, side: Side, *since: int) -> Answer:
    """One plan, which has all queues."""
    return checked(peer.ask("plan", side.name_server, "many", *since), rows=PLANNED)


def fill(side: Side, peer: Peer) -> None:
    """A message in each of the queues; waits until the broker lists them all."""
    wire.create_topic(side.address, "many", PLANNED)
    wire.send_to_each(side.address, "many", PLANNED)
    end = time.monotonic() + PATIENCE
    while (found := peer.ask("plan", side.name_server, "many")["rows"]) < PLANNED:
        if time.monotonic() > end:
            raise Failed(f"{side.name}: {found} of {PLANNED} queues have their message after {PATIENCE:.0f} s")
        time.sleep(0.2)
