"""Which requests are timed, and how the two clusters take turns."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from broker import wire
from broker.crowd import crowd
from broker.sides import Rmqfast, RocketMQ, Side, raise_open_files
from data import Dataset, scratch_dir
from groups import Plan
from measurement import Effort, Series, Variants, interleave, take, unmeasured
from peer import Answer, Failed, Missing, Peer
from rocketmq import java

CLIENTS = 5000
# Name of the row, its request, messages of a run, further words of the request.
SENDS = (
    ("sync 1", "sync", 15_000, 1),
    ("sync 4", "sync", 40_000, 4),
    ("sync 16", "sync", 60_000, 16),
    ("async", "async", 100_000, 256),
    ("batch", "batch", 128_000, 64),
)
READS = (("pull 32", "pull", 32), ("pull 1024", "pull", 1024), ("push 32", "push", 32))
STORED = 200_000
PACED_THREADS, PACED_SECONDS = 16, 5
SIDES = (RocketMQ, Rmqfast)


def broker(plan: Plan) -> list[Series]:
    """All rows: start and idle memory, rates with CPU, the tail at half load, many clients."""
    raise_open_files()
    scale = 1.0 if plan.memory_gib >= 5 else 0.05
    found = [series for side in SIDES for series in cold(side, plan.effort)]
    for dataset in plan.datasets:
        found += rates(dataset, plan.effort, scale)
    return found + [series for side in SIDES for series in crowds(side, plan.effort, int(CLIENTS * scale))]


def cold(side: type[Side], effort: Effort) -> list[Series]:
    """Starts until a message was accepted, in ms, and what an idle cluster has in memory, in MiB."""
    start, idle = Series(f"broker {side.name} start"), Series(f"broker {side.name} idle")

    def once() -> dict[str, Answer]:
        with side() as running:
            time.sleep(3)
            figures = {"start": running.started_in * 1000, "idle": running.resident_mib}
        return {name: {"rows": 1, "seconds": running.started_in, "value": value} for name, value in figures.items()}

    together([start, idle], once, effort.repeat)
    return [start, idle]


def crowds(side: type[Side], effort: Effort, clients: int) -> list[Series]:
    """One message to many that wait for it; each time a new cluster."""
    delivery, memory = Series(f"broker {side.name} crowd delivery"), Series(f"broker {side.name} crowd memory")

    def once() -> dict[str, Answer]:
        with side() as running:
            return crowd(running, clients)

    together([delivery, memory], once, min(3, effort.repeat))
    return [delivery, memory]


def together(series: list[Series], once: Callable[[], dict[str, Answer]], repeat: int) -> None:
    """Adds the figures of each run, several of one run, to the series that their names end with."""
    for _ in range(repeat):
        answers: dict[str, Answer] = {}

        def first(of: dict[str, Answer] = answers) -> Answer:
            of |= once()
            return of[series[0].name.split()[-1]]

        if series[0].missing is not None:
            break
        take(series[0], first)
        for other in series[1:]:
            if series[0].missing is None:
                take(other, partial(answers.__getitem__, other.name.split()[-1]))
    for other in series[1:]:
        other.missing, other.failed = series[0].missing, series[0].failed


def rates(dataset: Dataset, effort: Effort, scale: float) -> list[Series]:
    """Sends, pulls and pushes of one size, both clusters up, in turns."""
    at = dataset.label
    with ExitStack() as stack:
        peers: dict[Side, Peer] = {}
        missing: list[Series] = []
        for kind in SIDES:
            try:
                side = stack.enter_context(kind())
                peers[side] = stack.enter_context(clients(side))
                fill(side, peers[side], dataset.body, int(STORED * scale))
            except (Missing, Failed, OSError) as error:
                missing += [unmeasured(f"broker {kind.name} {row} {at}", error) for row in rows()]
        variants: Variants = {}
        for name, word, count, extra in SENDS:
            for side, peer in peers.items():
                request: tuple[object, ...] = (word, "sent", dataset.body, int(count * scale), extra)
                variants[f"broker {side.name} {name} {at}"] = partial(with_cpu, side, peer, request)
        for name, word, size in READS:
            for side, peer in peers.items():
                variants[f"broker {side.name} {name} {at}"] = partial(with_cpu, side, peer, (word, "stored", size))
        half = half_load(peers, dataset.body, int(60_000 * scale))
        for side, peer in peers.items():
            request = ("paced", "sent", dataset.body, half * PACED_SECONDS, PACED_THREADS, half)
            variants[f"broker {side.name} p99 {at}"] = partial(with_cpu, side, peer, request)
        return interleave(variants, effort, []) + missing


def rows() -> list[str]:
    """The names of the rows of one size."""
    return [name for name, *_ in (*SENDS, *READS)] + ["p99"]


def clients(side: Side) -> Peer:
    """The JVM with the clients of one side."""
    command = java("broker", "1g", "bench.BrokerPeer")
    return Peer(
        command, scratch_dir() / "logs" / f"broker-{side.name}.log", {"NAMESRV_ADDR": side.name_server, **os.environ}
    )


def fill(side: Side, peer: Peer, body: int, count: int) -> None:
    """Topics, the messages that are read, and connected clients."""
    for topic in ("sent", "stored"):
        wire.create_topic(side.address, topic, 4)
    peer.ask("connect", side.name_server)
    peer.ask("async", "stored", body, count, 256)


def half_load(peers: dict[Side, Peer], body: int, count: int) -> int:
    """Half of what RocketMQ's broker takes from so many threads, messages a second; of ours where it is alone."""
    side = next((side for side in peers if isinstance(side, RocketMQ)), next(iter(peers), None))
    if side is None:
        return 1
    for _ in range(2):
        answer = peers[side].ask("sync", "sent", body, count, PACED_THREADS)
    return max(PACED_THREADS, int(answer["rows"] / answer["seconds"] / 2))


def with_cpu(side: Side, peer: Peer, request: tuple[object, ...]) -> Answer:
    """An answer with the CPU time that the broker took meanwhile."""
    before = side.cpu_seconds
    answer = peer.ask(*request)
    if not answer["rows"]:
        raise Failed(f"{request[0]}: no rows; a broker removes what was stored where the disk is fuller than 85 %")
    return {**answer, "cpu_seconds": side.cpu_seconds - before}
