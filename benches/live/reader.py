"""The bare puller, scans of a cluster, and Spark's planning, without Spark; run as a module, it is a peer's child."""

from __future__ import annotations

import time

from data import TOPIC
from mirror.follower import drop
from peer import Answer, Failed, serve, timed
from rmqfast._native import Fetched, Puller, TopicRead, read_piece
from rmqfast.cluster import open_cluster
from rmqfast.message import MessageQueue
from rmqfast.store import COLUMNS

GROUP = "bench_reader"
DEPTH = 16  # a data source's `pullsInFlight`
GATHERED = (1 << 20, 0.02)  # bytes that are taken at once, as by a task; how long to wait for them
PATIENCE = 60.0
LOOKS, STILL = 0.1, 10.0  # seconds between two looks at what is stored, and until nothing more is awaited


def pull(name_server: str, batch: str, reads: str, rows: str) -> Answer:
    """So many rows of each queue, so many times, over one connection; nothing is made of what comes."""
    pieces = [read_piece(piece) for piece in read_of(name_server, TOPIC).plan()]
    address = pieces[0][0] or ""
    queues = sorted({MessageQueue(TOPIC, broker, number) for _, ranges in pieces for _, broker, number, _, _ in ranges})

    def work() -> Answer:
        return {"rows": sum(pulled(queues, address, int(batch), int(rows)) for _ in range(int(reads)))}

    return timed(work)


def scan(name_server: str, batch: str, reads: str, rows: str, columns: str) -> Answer:
    """So many rows of each queue, so many times, as Arrow batches of these columns, or of all; nobody keeps them."""
    cluster = open_cluster(name_server, group=GROUP, pull_batch_size=int(batch))
    names = columns.split(",") if columns else None

    def work() -> Answer:
        scans = [cluster.scan(TOPIC, end_offset=int(rows), columns=names) for _ in range(int(reads))]
        return {"rows": sum(each.num_rows for one in scans for each in one.batches())}

    return timed(work)


def pulled(queues: list[MessageQueue], address: str, batch: int, rows: int) -> int:
    """One read, as the messages that came."""
    puller = Puller(consumer_group=GROUP, depth=DEPTH, batch=batch, burst=DEPTH // 2, gather=GATHERED, suspend=0.0)
    try:
        for queue in queues:
            puller.assign(queue, address, 0, end=rows)
        ended = came = 0
        while ended < len(queues):
            # what happens to connections comes among the answers, and alone at times
            everything = puller.take(PATIENCE, max_items=1024)
            taken = [one for one in everything if isinstance(one, Fetched)]
            if not everything:
                raise Failed(f"nothing came for {PATIENCE:.0f} s behind {came} rows")
            came += sum(len(one) for one in taken)
            ended += sum(one.is_end for one in taken)
        return came
    finally:
        puller.close()


def socket(address: str, reads: str, size: str) -> Answer:
    """So many bytes of a log, so many times; nothing is made of what comes."""

    def work() -> Answer:
        for _ in range(int(reads)):
            drop(address, 1, int(size))
        return {}

    return timed(work)


def stored(name_server: str, topic: str, least: str) -> Answer:
    """The number of messages of a topic, once it reaches that many or stays the same for a while.

    RocketMQ indexes its commit log in a thread of its own: an acknowledged message may have no queue entry yet.
    """
    found, heard = 0, time.monotonic()
    while True:
        pieces = [read_piece(piece) for piece in read_of(name_server, topic).plan()]
        now = sum(end - begin for _, ranges in pieces for _, _, _, begin, end in ranges)
        if now > found:
            found, heard = now, time.monotonic()
        if found >= int(least) or time.monotonic() > heard + STILL:
            return {"rows": found}
        time.sleep(LOOKS)


def plan(name_server: str, topic: str, since: str = "") -> Answer:
    """Plans a read as Spark's driver does, from a time on if one is given; the value is seconds."""
    read = read_of(name_server, topic, int(since) if since else None)

    def work() -> Answer:
        return {"rows": sum(len(read_piece(piece)[1]) for piece in read.plan())}

    answer = timed(work)
    return {**answer, "value": answer["seconds"]}


def read_of(name_server: str, topic: str, since: int | None = None) -> TopicRead:
    """A read of a topic."""
    options = {"nameServer": name_server, "topic": topic, "group": GROUP}
    if since is not None:
        options["startingTimestamp"] = str(since)
    return TopicRead("topic batch", options, COLUMNS)


if __name__ == "__main__":
    serve({"pull": pull, "scan": scan, "socket": socket, "stored": stored, "plan": plan})
