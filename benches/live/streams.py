"""The group `stream`: a stream beside the batch read of the same rows, and its lag while messages come."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from broker import wire
from broker.group import together
from broker.sides import Rmqfast, Side
from client.group import rmqfast_process
from data import Dataset
from groups import Plan
from live.peers import RAISED, attempted, entered, spark
from measurement import Effort, Series, Variants, checked, interleave
from peer import Answer, Peer
from spark_groups import require_spark

#: Batches of a stream that reads what there is, of which the first does not count.
BATCHES = 4
RATE, SECONDS = 20_000, 20
EVERY = 1  # seconds from trigger to trigger
NUMBERS = itertools.count()


def stream(plan: Plan) -> list[Series]:
    """Both sizes."""
    return [series for dataset in plan.live for series in of_size(dataset, plan)]


def of_size(dataset: Dataset, plan: Plan) -> list[Series]:
    """The rates in turns, then the lag, all of rmqfast's broker in one session of Spark."""
    at, most = dataset.label, -(-dataset.rows // BATCHES)
    names = ("batch", "batch arrow", "steady", "ready batch", "ready steady")
    rates = [f"stream {row} {at}" for row in names]
    lags = [f"stream {at} {row}" for row in ("lag", "messages")]

    def measure() -> list[Series]:
        require_spark(plan.spark_python)
        with ExitStack() as stack:
            side = entered(stack, Rmqfast, dataset, RAISED)
            peer = stack.enter_context(spark(plan.spark_python, "local[2]"))
            jobs: list[partial[Answer]] = [
                partial(all_rows, dataset, peer, ("topic_source", side.name_server, 1024)),
                partial(all_rows, dataset, peer, ("topic", side.name_server, 1024)),
                partial(steady, dataset, peer, ("stream", side.name_server, 1024, most)),
                partial(all_rows, dataset, peer, ("ready_batch", dataset.body, dataset.rows)),
                partial(steady, dataset, peer, ("ready_stream", dataset.body, dataset.rows, most)),
            ]
            variants: Variants = dict(zip(rates, jobs, strict=True))
            found = interleave(variants, plan.effort, [side.directory / "store"])
            return found + lag(lags, side, peer, dataset, plan.effort)

    return attempted([*rates, *lags], measure)


def all_rows(dataset: Dataset, peer: Peer, request: tuple[object, ...]) -> Answer:
    """A batch read."""
    return checked(peer.ask(*request), rows=dataset.rows, bytes=dataset.body_bytes)


def steady(dataset: Dataset, peer: Peer, request: tuple[object, ...]) -> Answer:
    """A stream that gave each message once; timed are its batches behind the first."""
    return checked(peer.ask(*request), all_rows=dataset.rows, bytes=dataset.body_bytes, triggers=BATCHES)


def lag(names: list[str], side: Side, peer: Peer, dataset: Dataset, effort: Effort) -> list[Series]:
    """How far a stream is behind while messages come at a rate, in triggers and in messages; each time a new topic."""
    series = [Series(name) for name in names]
    seconds = SECONDS if effort.repeat > 1 else SECONDS // 2
    with rmqfast_process() as sender:
        sender.ask("connect", side.name_server)
        together(series, once(side, peer, sender, dataset.body, seconds), min(3, effort.repeat))
    return series


def once(side: Side, peer: Peer, sender: Peer, body: int, seconds: int) -> Callable[[], dict[str, Answer]]:
    """One topic that is written to and followed."""

    def run() -> dict[str, Answer]:
        topic = f"load_{next(NUMBERS)}"
        wire.create_topic(side.address, topic, 4)
        wire.call(side.address, wire.message(topic, 0))
        peer.ask("follow", side.name_server, topic, 1024, EVERY)
        sent = sender.ask("paced", topic, body, RATE * seconds, RATE)
        found = checked(peer.ask("followed", sent["rows"] + 1), all_rows=sent["rows"] + 1)
        told = {"rows": sent["rows"], "seconds": sent["seconds"], "triggers": found["triggers"]}
        behind = found["lag"]
        return {"lag": {**told, "value": behind / (RATE * EVERY)}, "messages": {**told, "value": behind}}

    return run
