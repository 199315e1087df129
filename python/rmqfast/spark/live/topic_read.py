"""What a Spark job reads of a topic: the bundle that driver and tasks share.

The driver fixes which offsets are read (`rmqfast._native.plan_topic`), and cuts them into pieces. Together these give
each message once, whenever and wherever they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rmqfast.client.ranges import RangeRequest

__all__ = ["MAX_ROWS", "RangeCut", "TopicOffsets", "TopicRead"]

TopicOffsets = Mapping[str, Mapping[int, int]] | Literal["earliest", "latest"]
"""A queue offset by broker and queue id, -1 for latest and -2 for earliest; or one word for all queues."""

#: Rows of a partition, unless a read says otherwise.
MAX_ROWS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeCut:
    """What filters leave of the queues; unlike offsets that a user names, there need not be any of these.

    Attributes:
        broker_names: Only queues of these brokers.
        queue_ids: Only queues with these numbers.
        start: Queue offsets from here on.
        end: Queue offsets before this.

    Source: none; Java's consumers take whole queues.
    """

    broker_names: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    start: int | None = None
    end: int | None = None


_WHOLE = RangeCut()


@dataclass(frozen=True, kw_only=True)
class TopicRead:
    """What all tasks of a read share: where the cluster is, and what shall be read. It is pickled to the workers.

    Args:
        request: Which messages, which columns.
        start: Where queues begin.
        end: Where they end.
        queue_ids: Only these queues of each broker.
        min_partitions: At least so many partitions, where there are as many messages.
        max_rows: Offsets of a partition at most.
        cut: What filters leave of it.

    Source: `RocketMqRDD` of rocketmq-spark, a partition of which is a queue.
    """

    request: RangeRequest
    start: TopicOffsets = "earliest"
    end: TopicOffsets = "latest"
    queue_ids: tuple[int, ...] | None = None
    min_partitions: int | None = None
    max_rows: int = MAX_ROWS
    cut: RangeCut = _WHOLE
