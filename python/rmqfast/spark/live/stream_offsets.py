"""Where a stream is in each queue, and how far its next batch goes: decisions from values alone.

A queue that is found while the stream runs first joins the offsets where it begins, and gives messages from the next
batch on: so each batch is a pair of offsets, and whoever runs it again reads the same.

Source: `KafkaMicroBatchStream`, `KafkaOffsetReader`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rmqfast._native import parse_topic_offsets
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue
from rmqfast.spark.live.admission import allotted
from rmqfast.spark.live.offsets import Bounds

__all__ = ["NextEnd", "checkpoint_offsets", "next_end"]

Offsets = Mapping[MessageQueue, int]


class NextEnd(NamedTuple):
    """How far a batch goes.

    Attributes:
        end: The offset of each queue.
        waiting: Messages that wait in all queues, before the batch.
        expired: Queues whose next messages retention has deleted.
        shorter: Queues that end before the stream's offset.
    """

    end: dict[MessageQueue, int]
    waiting: int
    expired: tuple[MessageQueue, ...]
    shorter: tuple[MessageQueue, ...]


def next_end(start: Offsets, bounds: Mapping[MessageQueue, Bounds], most: int | None) -> NextEnd:
    """How far the batch goes that begins at `start`.

    Args:
        start: Where the stream is.
        bounds: The queues as they are; one that is missing here, as its broker is away, stays where it is.
        most: Messages at most; None for all.

    Example:
        >>> a, b = MessageQueue("t", "x", 0), MessageQueue("t", "x", 1)
        >>> next_end({a: 5}, {a: (0, 25), b: (3, 9)}, 10).end == {a: 15, b: 3}
        True

    Source: `KafkaMicroBatchStream.latestOffset`.
    """
    known = [queue for queue in start if queue in bounds]
    # what has expired is none of what waits
    begins = {queue: max(start[queue], bounds[queue][0]) for queue in known}
    waiting = {queue: max(bounds[queue][1] - begins[queue], 0) for queue in known}
    shares = waiting if most is None else allotted(waiting, most)
    moved = {queue: begins[queue] + shares[queue] for queue in known if shares[queue]}
    found = {queue: first for queue, (first, _) in bounds.items() if queue not in start}
    return NextEnd(
        end={**start, **moved, **found},
        waiting=sum(waiting.values()),
        expired=tuple(queue for queue in known if start[queue] < bounds[queue][0]),
        shorter=tuple(queue for queue in known if bounds[queue][1] < start[queue]),
    )


def checkpoint_offsets(members: Any, topic: str) -> dict[MessageQueue, int]:
    """Offsets as a checkpoint has them.

    Args:
        members: What `offsets_json` made.
        topic: The topic that is read.

    Raises:
        ArgumentError: They are of another topic, or of another source.

    Example:
        >>> checkpoint_offsets({"orders": {"b": {"0": 5}}}, "orders")
        {MessageQueue(topic='orders', broker_name='b', queue_id=0): 5}
    """
    try:
        by_broker = parse_topic_offsets("checkpoint", json.dumps(members), topic)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; give this stream a checkpointLocation of its own") from None
    return {
        MessageQueue(topic, broker, queue_id): offset
        for broker, by_queue in by_broker.items()
        for queue_id, offset in by_queue.items()
    }
