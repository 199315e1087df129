"""The group `live`: the pulling reader, batch reads of Spark, planning, one worker and two."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial

from broker import wire
from broker.group import clients
from broker.sides import Rmqfast, RocketMQ, Side, raise_open_files
from data import TOPIC, Dataset
from groups import Plan
from live.batches import batches
from live.peers import KEEPS, RAISED, attempted, entered, reader
from live.scale import scale
from measurement import Effort, Series, Variants, checked, interleave, take
from peer import Answer, Failed, Peer

PLANNED = 10_000
PATIENCE = 120.0
#: A file of a consume queue is small, as there are 10,000 of them; sends may wait while those are made.
MANY = ("mappedFileSizeConsumeQueue=20000", "waitTimeMillsInSendQueue=60000")
SIDES: tuple[type[Side], ...] = (RocketMQ, Rmqfast)


def live(plan: Plan) -> list[Series]:
    """All rows of both sizes; then the planning, and the scale."""
    raise_open_files()
    found = [series for dataset in plan.live for series in pulls(dataset, plan.effort)]
    found += [series for dataset in plan.live for series in batches(dataset, plan)]
    found += [series for side in SIDES for series in planning(side, plan.effort)]
    return found + scale(plan)


def pulls(dataset: Dataset, effort: Effort) -> list[Series]:
    """32 a pull from RocketMQ's broker as it is shipped, over one connection: Arrow batches, Java's messages."""
    names = [f"live pull {who} {dataset.label}" for who in ("Java", "rmqfast", "eight")]

    def measure() -> list[Series]:
        with ExitStack() as stack:
            side = entered(stack, RocketMQ, dataset, KEEPS)
            java, ours = stack.enter_context(clients(side)), stack.enter_context(reader())
            java.ask("connect", side.name_server)
            requests = [partial(java.ask, "pull", TOPIC, 32)]
            requests += [partial(ours.ask, "pull", side.name_server, 32, columns) for columns in ("all", "eight")]
            variants: Variants = {
                name: partial(whole, dataset, request) for name, request in zip(names, requests, strict=True)
            }
            return interleave(variants, effort, [side.directory / "store"])

    return attempted(names, measure)


def whole(dataset: Dataset, ask: partial[Answer]) -> Answer:
    """An answer that has all messages."""
    return checked(ask(), rows=dataset.rows)


def planning(kind: type[Side], effort: Effort) -> list[Series]:
    """Seconds until Spark's driver knows what to read of 10,000 queues: whole, and from a time on."""
    names = [f"live plan {kind.name}", f"live plan {kind.name} since"]
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
