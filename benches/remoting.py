"""Round trips of a client in Python, the smallest there are: how long a queue is, asked of our own broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import limits
from broker import wire
from broker.sides import Rmqfast
from data import scratch_dir
from groups import Plan
from measurement import Series, Variants, checked, interleave
from peer import Answer, Failed, timed

COUNT = 20_000
WINDOW = 256
TOPIC = "roundtrips"
FIELDS = {"topic": TOPIC, "queueId": "0"}
Ask = Callable[[], int]


def remoting(plan: Plan) -> list[Series]:
    """Callers that wait, one and four of them, beside plain sockets in Python; and many requests in flight."""
    limits.require_rmqfast()
    from rmqfast.remoting import Connections

    scratch_dir().mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        side = stack.enter_context(Rmqfast())
        make_topic(side)
        connections = stack.enter_context(Connections())
        address = f"{side.address[0]}:{side.address[1]}"

        def ask() -> Ask:
            return lambda: connections.request(address, wire.GET_MAX_OFFSET, FIELDS).code

        def plain() -> Ask:
            connection = stack.enter_context(socket.create_connection(side.address, 5))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return lambda: plain_trip(connection)

        variants: Variants = {
            f"remoting {name} {threads}": partial(trips, make, threads)
            for threads in (1, 4)
            for name, make in (("rmqfast", ask), ("socket", plain))
        }
        variants["remoting async"] = partial(in_flight, connections, address)
        return interleave(variants, plan.effort, [])


def make_topic(side: Rmqfast) -> None:
    """A topic to ask for."""
    fields = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
    fields |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"}
    made = wire.call(side.address, wire.frame(wire.UPDATE_AND_CREATE_TOPIC, fields))
    if made["code"] != 0:
        raise Failed(f"no topic: {made}")


def plain_trip(connection: socket.socket) -> int:
    """A round trip as Python alone makes it."""
    connection.sendall(wire.frame(wire.GET_MAX_OFFSET, dict(FIELDS)))
    return int(wire.answer(connection)["code"])


def trips(make: Callable[[], Ask], threads: int) -> Answer:
    """So many round trips of as many threads."""
    asks = [make() for _ in range(threads)]
    codes: list[int] = []

    def run(ask: Ask) -> None:
        codes.append(max(ask() for _ in range(COUNT // threads)))

    def work() -> Answer:
        running = [threading.Thread(target=run, args=(ask,)) for ask in asks]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return {"rows": COUNT, "codes": len(codes), "worst": max(codes, default=-1)}

    return checked(timed(work), codes=threads, worst=0)


def in_flight(connections: object, address: str) -> Answer:
    """Requests that nobody waits for, so many at a time."""
    window, ended, over = threading.Semaphore(WINDOW), [], threading.Event()

    def on_done(end: object) -> None:
        ended.append(getattr(end, "code", -1))
        window.release()
        if len(ended) == COUNT:
            over.set()

    def work() -> Answer:
        for _ in range(COUNT):
            window.acquire()
            connections.submit(address, wire.GET_MAX_OFFSET, FIELDS, b"", on_done, timeout=30.0)  # type: ignore[attr-defined]
        over.wait(30)
        return {"rows": len(ended), "wrong": sum(code != 0 for code in ended)}

    return checked(timed(work), rows=COUNT, wrong=0)
