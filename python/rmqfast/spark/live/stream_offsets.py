"""Where a stream is in each queue, and how far its next batch goes: decisions from values alone.

A queue that is found while the stream runs first joins the offsets where it begins, and gives messages from the next
batch on: so each batch is a pair of offsets, and whoever runs it again reads the same.

Source: `KafkaMicroBatchStream`, `KafkaOffsetReader`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rmqfast import _native
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue

__all__ = ["Bounds", "NextEnd", "checkpoint_offsets", "next_end", "offsets_json"]

Offsets = Mapping[MessageQueue, int]

Bounds = tuple[int, int]
"""A queue's first offset, and the one behind its last."""


def offsets_json(topic: str, offsets: Offsets) -> dict[str, dict[str, dict[str, int]]]:
    """Offsets as the option `startingOffsets` has them; in an order of their own, as Spark compares texts.

    Example:
        >>> offsets_json("orders", {MessageQueue("orders", "b", 1): 7, MessageQueue("orders", "b", 0): 5})
        {'orders': {'b': {'0': 5, '1': 7}}}
    """
    by_broker: dict[str, dict[str, int]] = {}
    # Spark takes two texts that differ in order for two offsets, and runs an empty batch
    for queue in sorted(offsets):
        by_broker.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return {topic: by_broker}


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
    # the native function knows no topic: these bring it back
    queues = {(queue.broker_name, queue.queue_id): queue for queue in (*start, *bounds)}
    at = [((queue.broker_name, queue.queue_id), offset) for queue, offset in start.items()]
    between = [(queue.broker_name, queue.queue_id, *ends) for queue, ends in bounds.items()]
    end, waiting, expired, shorter = _native.next_end(at, between, most)
    return NextEnd(
        end={queues[place]: offset for place, offset in end},
        waiting=waiting,
        expired=tuple(queues[place] for place in expired),
        shorter=tuple(queues[place] for place in shorter),
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
        # the form of `startingOffsets`, so that a user may copy it from there
        by_broker = _native.parse_topic_offsets("checkpoint", json.dumps(members), topic)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; give this stream a checkpointLocation of its own") from None
    return {
        MessageQueue(topic, broker, queue_id): offset
        for broker, by_queue in by_broker.items()
        for queue_id, offset in by_queue.items()
    }
