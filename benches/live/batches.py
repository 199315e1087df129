"""Batch reads of Spark 4.0 in one session: of RocketMQ's broker, of rmqfast's, of Kafka's, of the store directory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from broker.sides import Rmqfast, RocketMQ, Side
from data import Dataset, store
from groups import Plan
from kafka import Kafka, connector_jars
from live.peers import KEEPS, LACKING, RAISED, attempted, entered, spark
from measurement import Series, Variants, checked, interleave, unmeasured
from peer import Answer, Peer
from spark_groups import require_spark

#: Name of the row, its request, of what place, further words of the request.
ROWS: tuple[tuple[str, str, str, tuple[object, ...]], ...] = (
    ("kafka tuned", "kafka", "Kafka", ("tuned",)),
    ("topic arrow", "topic", "RocketMQ", (32,)),
    ("topic source", "topic_source", "RocketMQ", (32,)),
    ("topic eight", "topic", "RocketMQ", (32, "eight")),
    ("own arrow", "topic", "rmqfast", (1024,)),
    ("own source", "topic_source", "rmqfast", (1024,)),
    ("store arrow", "engine", "store", ("arrow",)),
    ("store source", "source", "store", ()),
    ("store eight", "engine", "store", ("arrow", "*", "eight")),
    ("store columnar", "engine", "store", ("columnar",)),
)


@dataclass(frozen=True)
class Place:
    """Where the messages are: what a request says of it, its files, or why it is not there."""

    words: tuple[object, ...] = ()
    files: tuple[Path, ...] = ()
    missing: Exception | None = None


def batches(dataset: Dataset, plan: Plan) -> list[Series]:
    """All reads of one dataset."""
    names = [f"live {row} {dataset.label}" for row, *_ in ROWS]
    return attempted(names, lambda: measured(dataset, plan))


def measured(dataset: Dataset, plan: Plan) -> list[Series]:
    """The reads in turns; a broker that does not start leaves the others their chance."""
    require_spark(plan.kafka_python)
    with ExitStack() as stack:
        places = {
            "store": Place((store(dataset),), (store(dataset),)),
            "RocketMQ": started(lambda: of_side(entered(stack, RocketMQ, dataset, KEEPS))),
            "rmqfast": started(lambda: of_side(entered(stack, Rmqfast, dataset, RAISED))),
            "Kafka": started(lambda: of_kafka(stack.enter_context(Kafka()), dataset)),
        }
        jars = "" if places["Kafka"].missing else connector_jars()
        peer = stack.enter_context(spark(plan.kafka_python, "local[2]", jars))
        variants: Variants = {}
        missing: list[Series] = []
        for row, word, where, more in ROWS:
            name, place = f"live {row} {dataset.label}", places[where]
            if place.missing:
                missing.append(unmeasured(name, place.missing))
            else:
                variants[name] = partial(whole, dataset, peer, (word, *place.words, *more))
        return interleave(variants, plan.effort, [file for place in places.values() for file in place.files]) + missing


def whole(dataset: Dataset, peer: Peer, request: tuple[object, ...]) -> Answer:
    """An answer that has all messages and all bytes of their bodies."""
    return checked(peer.ask(*request), rows=dataset.rows, bytes=dataset.body_bytes)


def started(start: Callable[[], Place]) -> Place:
    """A place, or why it is not there."""
    try:
        return start()
    except LACKING as error:
        return Place(missing=error)


def of_side(side: Side) -> Place:
    """A cluster of RocketMQ's kind."""
    return Place((side.name_server,), (side.directory / "store",))


def of_kafka(broker: Kafka, dataset: Dataset) -> Place:
    """Kafka's broker with a topic of the same messages."""
    return Place((broker.bootstrap, broker.fill(dataset)), (broker.data,))
