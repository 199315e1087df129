"""The stream of a topic: what the driver decides of each batch; tasks read it as those of a batch read do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rmqfast._native import TopicCluster, cut_ranges
from rmqfast.errors import DataLossError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.spark.live.stream_offsets import Bounds, NextEnd, next_end
from rmqfast.spark.live.topic_read import TopicRead

__all__ = ["StreamLimits", "TopicStream"]

_LOG = logging.getLogger("rmqfast.spark")

Offsets = dict[MessageQueue, int]


@dataclass(frozen=True, kw_only=True)
class StreamLimits:
    """How much a batch takes.

    Attributes:
        most: Messages at most.
        least: Messages at least; fewer wait for more of them.
        delay: For how many seconds at most.
    """

    most: int | None = None
    least: int | None = None
    delay: float = 900.0


class TopicStream:
    """A stream as its driver sees it; it holds connections from the first question on.

    Args:
        read: What is read; its end is not looked at.
        limits: How much a batch takes.
        commit_group: The group for which offsets are stored; None for none.
        clock: Seconds, never going back.

    Source: `KafkaMicroBatchStream` of Spark.
    """

    def __init__(
        self,
        read: TopicRead,
        limits: StreamLimits,
        commit_group: str | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._limits, self._group, self._clock = read, limits, commit_group, clock
        self._cluster: TopicCluster | None = None
        self._addresses: dict[str, str] = {}
        self._target: dict[MessageQueue, Bounds] | None = None
        self._last_batch = self._clock()
        self._shorter_since: dict[MessageQueue, float] = {}
        # a loss that is passed over is found again by each trigger, and told once
        self._told: set[tuple[MessageQueue, int]] = set()
        self.latest: Offsets = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without connections: a task has its own."""
        # PySpark pickles the reader, and with it this, to each task
        return {**self.__dict__, "_cluster": None}

    def initial(self) -> Offsets:
        """Where a stream without a checkpoint begins.

        Raises:
            RmqError: As `rmqfast._native.plan_topic`.
        """
        # a queue that is missing here would begin at its first message later, not where the option says
        bounds = self._bounds(is_patient=False)
        return self._brokers().initial(bounds)

    def aim(self) -> None:
        """From now on no batch goes beyond what there is now."""
        self._target = self._bounds(is_patient=False)

    def end(self, start: Offsets | None, *, is_limited: bool) -> Offsets:
        """How far the batch goes that begins at `start`; as far as that, where there is nothing to read yet.

        Args:
            start: Where the stream is; None where Spark does not say, which goes to the end.
            is_limited: Whether the limits hold.

        Raises:
            DataLossError: Retention overtook the stream, or a queue ends before it, unless `on_damage` is "warn".
            ClientError: No name server answers for longer than the request's patience.
        """
        # where Spark does not say where the stream was, no queue may be missing
        bounds = self._bounds(is_patient=start is not None) if self._target is None else self._target
        # kept from before for brokers that are away: the progress of a query shows the lag of all queues
        self.latest |= {queue: last for queue, (_, last) in bounds.items()}
        if start is None:
            return {queue: last for queue, (_, last) in bounds.items()}
        following = next_end(start, bounds, self._limits.most if is_limited else None)
        self._check(start, following, bounds)
        end = self._cut_back(start, following.end, following.shorter, bounds)
        # only while no queue is new: a queue that was found must reach the checkpoint at once
        if is_limited and self._waits(following.waiting, is_same=end.keys() == start.keys()):
            return start
        if end != start:
            self._last_batch = self._clock()
            taken = sum(end[queue] - start[queue] for queue in start if end[queue] > start[queue])
            _LOG.info("topic %s: a batch of %d offsets, %d wait", self._read.request.topic, taken, following.waiting)
        return end

    def pieces(self, start: Offsets, end: Offsets) -> list[bytes]:
        """The tasks of a batch."""
        new = [queue for queue in end if queue not in start]
        if new:  # where Spark did not say where the stream was
            start = {**{queue: first for queue, (first, _) in self._bounds(only=new).items()}, **start}
        ranges = [
            (queue.broker_name, queue.queue_id, start[queue], end[queue])
            for queue in sorted(end)
            if queue in start and start[queue] < end[queue]
        ]
        # from the offsets alone: Spark may plan a batch more than once, and must get the same tasks
        return cut_ranges(ranges, self._addresses, self._read.max_rows, self._read.min_partitions or 1)

    def commit(self, end: Offsets) -> None:
        """Spark has stored all before `end`: a group's offsets follow, where that is wanted."""
        if self._group is not None and end:
            try:
                self._brokers().commit(self._group, end)
            except RmqError as error:
                _LOG.warning("group %s: no offset is stored: %s", self._group, error)

    def stop(self) -> None:
        """Closes the connections."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()

    def _brokers(self) -> TopicCluster:
        if self._cluster is None:
            self._cluster = TopicCluster(self._read)
        return self._cluster

    def _bounds(
        self, *, is_patient: bool = True, only: Sequence[MessageQueue] | None = None
    ) -> dict[MessageQueue, Bounds]:
        cluster = self._brokers()
        try:
            addresses = cluster.look_up()
        except RmqError as error:  # a topic whose only broker is away is one that name servers do not know
            if not is_patient or not self._addresses:
                raise
            _LOG.warning("topic %s: its route is not to be had now: %s", self._read.request.topic, error)
            return {}
        # a broker that is away keeps its last address: its tasks wait there
        self._addresses |= addresses
        return cluster.bounds(only, is_patient=is_patient)

    def _check(self, start: Offsets, following: NextEnd, bounds: Mapping[MessageQueue, Bounds]) -> None:
        for queue in following.expired:
            self._lost(
                queue, start[queue], f"offset {start[queue]} has expired, the queue begins at {bounds[queue][0]}"
            )

    def _cut_back(
        self, start: Offsets, end: Offsets, shorter: Sequence[MessageQueue], bounds: Mapping[MessageQueue, Bounds]
    ) -> Offsets:
        """A queue may end before the stream's offset while its broker lists anew what it has; but not for ever."""
        now = self._clock()
        self._shorter_since = {queue: self._shorter_since.get(queue, now) for queue in shorter}
        for queue, since in self._shorter_since.items():
            if now - since > self._read.request.patience:
                last = bounds[queue][1]
                self._lost(
                    queue,
                    start[queue],
                    f"the queue ends at {last}, before offset {start[queue]}: its broker lost "
                    "its last messages, or the topic was made anew",
                )
                # back to where the queue ends: new messages of a topic that was made anew are read
                end = {**end, queue: last}
        return end

    def _lost(self, queue: MessageQueue, offset: int, what: str) -> None:
        text = f"topic {queue.topic}, broker {queue.broker_name}, queue {queue.queue_id}: messages are lost: {what}"
        if self._read.request.on_damage == "fail":
            raise DataLossError(text, next_step="failOnDataLoss=false goes on with what is there")
        if (queue, offset) not in self._told:
            self._told.add((queue, offset))
            _LOG.warning("%s", text)

    def _waits(self, waiting: int, *, is_same: bool) -> bool:
        least = self._limits.least
        # Trigger.AvailableNow would never end if it waited for more
        if least is None or self._target is not None or not is_same or waiting >= least:
            return False
        return self._clock() - self._last_batch < self._limits.delay
