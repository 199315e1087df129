"""What the ledger of pulls costs: the same broker with it and without it, in turns, and a million pulls of it."""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial

from broker import wire
from broker.sides import LIMITS, Rmqfast, raise_open_files, resident_bytes
from groups import Plan
from measurement import Series, Variants, interleave, take
from peer import Answer, Failed

PULLS, STORED, GROUPS = 200_000, 200_000, 3000
IN_FLIGHT = 64
TOPIC = "stored"
#: Rows that the broker of the last measurement may keep.
MOST_ROWS = 100_000


def ledger(plan: Plan) -> list[Series]:
    """Pulls of one message and of 32 with and without a ledger; memory and file of a million pulls."""
    raise_open_files()
    return rates(plan) + million(plan)


def rates(plan: Plan) -> list[Series]:
    stored = int(STORED * plan.scale)
    with ExitStack() as stack:
        limits = limits_of()
        # A third broker tells by how much two that are alike differ.
        limits["again"] = limits["without"]
        sides = {name: stack.enter_context(Rmqfast(each)) for name, each in limits.items()}
        variants: Variants = {}
        for dataset in plan.datasets:
            topic = f"{TOPIC}{dataset.body}"
            for side in sides.values():
                fill(side, topic, stored, dataset.body)
            for size in (1, 32):
                count = int(PULLS * plan.scale) // (1 if size == 1 else 4)
                frames = [pull("g0", number * size % (stored - size), size, topic=topic) for number in range(count)]
                for name, side in sides.items():
                    variants[f"ledger {name} pull {size} {dataset.label}"] = partial(warm_and_timed, side, frames, size)
        return interleave(variants, plan.effort, [])


def limits_of() -> dict[str, tuple[str, ...]]:
    return {"with": LIMITS, "without": (*LIMITS, "pullLedgerEnable=false")}


def million(plan: Plan) -> list[Series]:
    """Growth of the broker's memory by a million pulls, and its ledger's file, in MiB."""
    found = []
    count = int(1_000_000 * plan.scale)
    one_row_each = itertools.cycle(("c1", "c2"))
    loads: dict[str, Callable[[], Iterator[bytes]]] = {
        "3,000 groups": lambda: pulls_of_groups(count),
        "a row each": lambda: (pull("g0", number % STORED, 1, next(one_row_each)) for number in range(count)),
    }
    for name, load in loads.items():
        memory, size = Series(f"ledger memory {name}"), Series(f"ledger file {name}")
        grown = {}
        for kind, limits in limits_of().items():
            with Rmqfast((*limits, f"pullLedgerRows={MOST_ROWS}")) as side:
                fill(side, TOPIC, int(STORED * plan.scale), 8)
                begin, seconds = resident_bytes(side.pids[0]), timed(side, load(), 1)["seconds"]
                grown[kind] = resident_bytes(side.pids[0]) - begin
                time.sleep(12)  # two saves, every five seconds
                files = (side.directory / "store/config").glob("ledger.db*")
                kept = sum(path.stat().st_size for path in files)
            if kind == "with":
                take(size, partial(figure, count, seconds, kept))
        extra = grown["with"] - grown["without"]
        take(memory, partial(figure, count, seconds, extra))
        found += [memory, size]
    return found


def figure(rows: int, seconds: float, size: int) -> Answer:
    return {"rows": rows, "seconds": seconds, "value": size / 2**20}


def fill(side: Rmqfast, topic: str, count: int, body: int) -> None:
    """Stores messages in one queue."""
    wire.create_topic(side.address, topic, 1)
    exchange(side, itertools.repeat(wire.message(topic, 0, b"x" * body), count))


def pull(group: str, offset: int, most: int, client: str = "c1", topic: str = TOPIC) -> bytes:
    fields: dict[str, object] = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": 0,
        "queueOffset": offset,
        "maxMsgNums": most,
        "sysFlag": 4,  # the pull has its subscription
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 1,
        "clientId": client,
    }
    return wire.frame(wire.PULL_MESSAGE, fields)


def pulls_of_groups(count: int) -> Iterator[bytes]:
    """Pulls of 3,000 groups in turns, each of which goes on from message to message."""
    return (pull(f"g{number % GROUPS}", number // GROUPS, 1) for number in range(count))


def warm_and_timed(side: Rmqfast, frames: list[bytes], size: int) -> Answer:
    """Times pulls of messages that the broker has just sent: another broker had the processor's caches before."""
    exchange(side, frames[: len(frames) // 2])
    return timed(side, frames, size)


def timed(side: Rmqfast, frames: Iterable[bytes], size: int) -> Answer:
    """Sends pulls, so many in flight, and counts messages and the broker's CPU time."""
    before, begin = side.cpu_seconds, time.perf_counter()
    answers = exchange(side, frames)
    seconds = time.perf_counter() - begin
    return {"rows": answers * size, "seconds": seconds, "cpu_seconds": side.cpu_seconds - before}


def exchange(side: Rmqfast, frames: Iterable[bytes]) -> int:
    """Sends frames, so many in flight, and reads past their answers. Returns their number."""
    count, source = 0, iter(frames)
    with socket.create_connection(side.address, 30) as connection, connection.makefile("rb", 1 << 20) as answers:
        while batch := list(itertools.islice(source, IN_FLIGHT)):
            connection.sendall(b"".join(batch))
            for _ in batch:
                (length,) = struct.unpack(">I", answers.read(4))
                answer = answers.read(length)
                # the first answer of all tells whether the requests are what they should be
                if count == 0 and b'"code":0' not in answer[:400].replace(b" ", b""):
                    raise Failed(f"the broker answers {answer[:400]!r}")
                count += 1
    return count
