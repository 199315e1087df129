"""What a Spark job reads of a topic, and the partitions that its tasks read apart from each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rmqfast import _native
from rmqfast.client.ranges import QueueRange, RangeRequest, TopicRoute
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue
from rmqfast.spark.live.offsets import Bounds, TopicOffsets, resolve_offsets
from rmqfast.spark.live.range_cut import RangeCut

if TYPE_CHECKING:
    from rmqfast.spark.live.topic_cluster import TopicCluster

__all__ = ["MAX_ROWS", "TopicPartition", "TopicRead", "check_topic", "cut_ranges", "plan_topic"]

#: Rows of a partition, unless a read says otherwise.
MAX_ROWS = 1_000_000
_MOST_PARTITIONS = 1_000_000
_WHOLE = RangeCut()


class TopicPartition(NamedTuple):
    """One task's share: ranges of queues of one broker that no other task reads.

    Attributes:
        ranges: The ranges, of different queues.
        address: `host:port` at which the broker was when this was planned.
    """

    ranges: tuple[QueueRange, ...]
    address: str | None


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

    Raises:
        ArgumentError: A value out of range.

    Source: `RocketMqRDD` of rocketmq-spark, a partition of which is a queue.
    """

    request: RangeRequest
    start: TopicOffsets = "earliest"
    end: TopicOffsets = "latest"
    queue_ids: tuple[int, ...] | None = None
    min_partitions: int | None = None
    max_rows: int = MAX_ROWS
    cut: RangeCut = _WHOLE

    def __post_init__(self) -> None:
        """Checks in the driver what would otherwise fail in every task."""
        if not 1 <= (1 if self.min_partitions is None else self.min_partitions) <= _MOST_PARTITIONS:
            raise ArgumentError(f"min_partitions: expected 1 to {_MOST_PARTITIONS}, got {self.min_partitions}")
        if self.max_rows < 1:
            raise ArgumentError(f"max_rows: expected 1 or more, got {self.max_rows}")

    def cluster(self) -> TopicCluster:
        """Connects the driver to the brokers of the topic."""
        from rmqfast.spark.live.topic_cluster import TopicCluster  # what only a driver needs

        return TopicCluster(self.request.config, self.request.topic)

    def wanted(self, route: TopicRoute) -> tuple[MessageQueue, ...]:
        """The queues that are read.

        Raises:
            ArgumentError: A queue that no broker has.
        """
        ids = {queue.queue_id for queue in route.queues}
        unknown = [queue_id for queue_id in self.queue_ids or () if queue_id not in ids]
        if unknown:
            listed = ", ".join(map(str, sorted(ids)))
            raise ArgumentError(f"queue_ids: no queue {unknown[0]}; the topic's queues are {listed}")
        return tuple(q for q in route.queues if self.queue_ids is None or q.queue_id in self.queue_ids)


def check_topic(read: TopicRead) -> None:
    """Looks whether a read can be: not at offsets, which a stream with a checkpoint has no use for.

    Args:
        read: What is read.

    Raises:
        UnknownTopicError: The name servers do not know the topic.
        ArgumentError: A queue that no broker has.
        ClientError: No name server answers, or a broker refuses; one that does not answer now may do so later.

    Source: none.
    """
    with read.cluster() as cluster:
        cluster.bounds(read.wanted(cluster.route()), is_patient=True)
        cluster.check_expression(read.request.subscription, read.request.group, is_patient=True)


def plan_topic(read: TopicRead) -> list[TopicPartition]:
    """Fixes what is read, and cuts it into partitions: together they give each message once, whenever they are read.

    Args:
        read: What is read.

    Returns:
        Partitions in the order of brokers and queues; none where there is nothing to read.

    Raises:
        UnknownTopicError: The name servers do not know the topic.
        DataLossError: An offset that a queue does not have, unless `on_damage` is "warn".
        ClientError: A broker does not answer, or refuses.

    Source: `RocketMQSource.getOffsetRanges`.
    """
    with read.cluster() as cluster:
        route = cluster.route()
        bounds = cluster.bounds(read.wanted(route))
        cluster.check_expression(read.request.subscription, read.request.group)
        ranges = _ranges(read, cluster, bounds)
    return cut_ranges(ranges, route.addresses, max_rows=read.max_rows, min_partitions=read.min_partitions or 1)


def _ranges(read: TopicRead, cluster: TopicCluster, bounds: Mapping[MessageQueue, Bounds]) -> list[QueueRange]:
    on_damage, request = read.request.on_damage, read.request
    start = resolve_offsets("startingOffsets", read.start, bounds, edge="start", on_damage=on_damage)
    end = resolve_offsets("endingOffsets", read.end, bounds, edge="end", on_damage=on_damage)
    bounds = {queue: between for queue, between in bounds.items() if read.cut.has(queue)}
    start = {queue: start[queue] for queue in bounds}
    if request.start_time is not None:
        later = cluster.offsets_at(request.start_time, bounds, group=request.group)
        start = {queue: max(offset, later[queue]) for queue, offset in start.items()}
    if request.end_time is not None:
        sooner = cluster.offsets_at(request.end_time, bounds, group=request.group)
        end = {queue: min(end[queue], sooner[queue]) for queue in bounds}
    ranges = [read.cut.of(QueueRange(queue, start[queue], end[queue])) for queue in start]
    return [left for left in ranges if left.start < left.end]


def cut_ranges(
    ranges: Sequence[QueueRange],
    addresses: Mapping[str, str],
    *,
    max_rows: int = MAX_ROWS,
    min_partitions: int = 1,
) -> list[TopicPartition]:
    """Cuts large ranges, and puts small ones of a broker together.

    Args:
        ranges: One of each queue.
        addresses: Where brokers are, by name.
        max_rows: Offsets of a partition at most.
        min_partitions: Partitions at least, where there are as many offsets.

    Example:
        >>> queues = [MessageQueue("orders", "b", queue_id) for queue_id in range(3)]
        >>> parts = cut_ranges([QueueRange(queue, 0, 10) for queue in queues], {}, max_rows=8)
        >>> [[(r.queue.queue_id, r.start, r.end) for r in part.ranges] for part in parts]
        [[(0, 0, 5)], [(0, 5, 10)], [(1, 0, 5)], [(1, 5, 10)], [(2, 0, 5)], [(2, 5, 10)]]

    Source: `KafkaOffsetRangeCalculator` of Spark.
    """
    queues = {(wanted.queue.broker_name, wanted.queue.queue_id): wanted.queue for wanted in ranges}
    given = [(r.queue.broker_name, r.queue.queue_id, r.start, r.end) for r in ranges]
    found = []
    for task in _native.cut_ranges(given, max_rows, min_partitions):
        parts = tuple(QueueRange(queues[broker, queue_id], start, end) for broker, queue_id, start, end in task)
        found.append(TopicPartition(parts, addresses.get(parts[0].queue.broker_name)))
    return found
