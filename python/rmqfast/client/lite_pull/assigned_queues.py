"""The queues that a lite pull consumer has, how far it is in each, and what waits of them.

Source: `AssignedMessageQueue`, `DefaultLitePullConsumerImpl.consumeRequestCache`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from rmqfast.client.consumer.offset_store import NO_OFFSET
from rmqfast.client.lite_pull.cached_batch import CachedBatch, LiteQueue
from rmqfast.client.lite_pull.options import LitePullOptions
from rmqfast.message import MessageQueue


class AssignedQueue:
    """How far it is in one queue.

    Attributes:
        queue: The queue, its topic with its namespace.
        process_queue: What waits of it.
        is_paused: Whether the application wants nothing new of it for now.
        pull_offset: Where to pull next; -1 where that has to be looked up.
        consume_offset: Where the application is; -1 where it got nothing yet.
        epoch: Grows with each seek: what was pulled before is of no use.
        is_dropped: Whether it is not this consumer's any more.

    Source: `AssignedMessageQueue.MessageQueueState`.
    """

    __slots__ = ("consume_offset", "epoch", "is_dropped", "is_paused", "process_queue", "pull_offset", "queue")

    def __init__(self, queue: MessageQueue, process_queue: LiteQueue) -> None:
        self.queue, self.process_queue = queue, process_queue
        self.is_paused = self.is_dropped = False
        self.pull_offset = self.consume_offset = NO_OFFSET
        self.epoch = 0


class AssignedQueues:
    """The queues that it has; each call is one step to all threads.

    Args:
        options: How much may wait.
        clock: Tells the time in seconds.
    """

    def __init__(self, options: LitePullOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options, self._clock = options, clock
        self._changed = threading.Condition()
        self._queues: dict[MessageQueue, AssignedQueue] = {}
        self._cache: deque[CachedBatch] = deque()
        self._is_closed = False
        self._on_arrival: Callable[[], object] = _nobody

    def tell_of_arrivals(self, tell: Callable[[], object]) -> None:
        """Has a function called whenever something waits that did not before, and at the end; it must not wait."""
        self._on_arrival = tell

    def queues(self) -> list[MessageQueue]:
        """The queues, in their order."""
        with self._changed:
            return sorted(self._queues)

    def get(self, queue: MessageQueue) -> AssignedQueue | None:
        """One of them."""
        return self._queues.get(queue)

    def update_topic(
        self, topic: str, mine: Collection[MessageQueue], process_queues: Mapping[MessageQueue, LiteQueue]
    ) -> tuple[list[AssignedQueue], list[AssignedQueue]]:
        """Has these queues of a topic from now on, and no others of it.

        Args:
            topic: The topic.
            mine: The queues.
            process_queues: What waits of those that the rebalance knows.

        Returns:
            Those that are new, and those that are gone.

        Source: `AssignedMessageQueue.updateAssignedMessageQueue`.
        """
        with self._changed:
            gone = [
                queue
                for queue, assigned in self._queues.items()
                if queue.topic == topic and (queue not in mine or assigned.process_queue.is_dropped)
            ]
            return self._exchange(gone, mine, process_queues)

    def replace(self, mine: Collection[MessageQueue]) -> tuple[list[AssignedQueue], list[AssignedQueue]]:
        """Has these queues from now on, and no others.

        Returns:
            Those that are new, and those that are gone.

        Source: `AssignedMessageQueue.updateAssignedMessageQueue`.
        """
        with self._changed:
            return self._exchange([queue for queue in self._queues if queue not in mine], mine, {})

    def pause(self, queues: Iterable[MessageQueue], *, is_paused: bool) -> list[AssignedQueue]:
        """Wants nothing new of queues, or again; those that it does not have are passed over.

        Source: `AssignedMessageQueue.pause`, `resume`.
        """
        with self._changed:
            found = [assigned for queue in queues if (assigned := self._queues.get(queue)) is not None]
            for assigned in found:
                assigned.is_paused = is_paused
            return found

    def is_paused(self, queue: MessageQueue) -> bool:
        """Whether nothing new is wanted of a queue, as of one that it does not have.

        Source: `AssignedMessageQueue.isPaused`.
        """
        assigned = self._queues.get(queue)
        return assigned is None or assigned.is_paused

    def seek(self, queue: MessageQueue, offset: int) -> AssignedQueue | None:
        """Goes on elsewhere; what waits of the queue is thrown away.

        Returns:
            The queue; `None` where it does not have it any more.

        Source: `DefaultLitePullConsumerImpl.seek`.
        """
        with self._changed:
            assigned = self._queues.get(queue)
            if assigned is not None:
                self._clear(assigned)
                assigned.epoch += 1
                assigned.pull_offset = assigned.consume_offset = offset
            return assigned

    def advance(self, assigned: AssignedQueue, epoch: int, next_offset: int, batch: CachedBatch | None = None) -> bool:
        """A pull has ended: it goes on behind it, and what it brought waits.

        Args:
            assigned: The queue.
            epoch: That of the queue when it was asked.
            next_offset: Where to pull next.
            batch: What came, if anything.

        Returns:
            Whether that was of use: not where the queue is gone, or another place was sought meanwhile.
        """
        with self._changed:
            if not self._is_current(assigned, epoch):
                return False
            assigned.pull_offset = next_offset
            if batch is not None:
                assigned.process_queue.put(batch)
                self._cache.append(batch)
                self._changed.notify()
                self._on_arrival()
            return True

    def is_current(self, assigned: AssignedQueue, epoch: int) -> bool:
        """Whether it has the queue, and no other place was sought."""
        with self._changed:
            return self._is_current(assigned, epoch)

    def is_full(self, assigned: AssignedQueue) -> bool:
        """Whether so much waits that nothing more is to be pulled of a queue.

        Source: `DefaultLitePullConsumerImpl.PullTaskImpl.run`.
        """
        options, waiting = self._options, assigned.process_queue
        with self._changed:  # a `take` on another thread has parts of the cache elsewhere for a moment
            return (
                self.is_full_in_all()
                or waiting.count > options.pull_threshold_for_queue
                or waiting.size > options.pull_threshold_size_for_queue
                or waiting.span > options.consume_max_span
            )

    def is_full_in_all(self) -> bool:
        """Whether so much waits that nothing more is to be pulled of any queue; each answer counts as a whole batch.

        Source: `DefaultLitePullConsumerImpl.PullTaskImpl.run`.
        """
        with self._changed:
            return len(self._cache) * self._options.pull_batch_size > self._options.pull_threshold_for_all

    def take(self, timeout: float, *, most_messages: int = 1, most_bytes: int = 1) -> list[CachedBatch]:
        """What waits longest, and with it as much of the same broker as is wanted; the application has it from now on.

        Args:
            timeout: How long to wait for the first batch, in seconds.
            most_messages: Messages after which no further batch is taken.
            most_bytes: Bytes after which no further batch is taken.
        """
        deadline = self._clock() + timeout
        with self._changed:
            while self._wait(deadline):
                broker_name, taken, left = self._cache[0].queue.broker_name, list[CachedBatch](), deque[CachedBatch]()
                while self._cache and most_messages > 0 and most_bytes > 0:
                    batch = self._cache.popleft()
                    if batch.process_queue.is_dropped:
                        continue
                    if batch.queue.broker_name != broker_name:
                        left.append(batch)
                        continue
                    self._queues[batch.queue].consume_offset = batch.process_queue.remove(batch)
                    taken.append(batch)
                    most_messages, most_bytes = most_messages - batch.count, most_bytes - batch.size
                left.extend(self._cache)
                self._cache = left
                if taken:
                    return taken
            return []

    def give_back(self, batches: Sequence[CachedBatch]) -> None:
        """Has batches wait again, before all others: the application does not get them now."""
        with self._changed:
            for batch in reversed(batches):
                assigned = self._queues.get(batch.queue)
                if (
                    assigned is not None
                    and assigned.process_queue is batch.process_queue
                    and batch.epoch == assigned.epoch
                ):
                    assigned.process_queue.put_first(batch)
                    assigned.consume_offset = batch.first
                    self._cache.appendleft(batch)
            self._on_arrival()

    def consumed(self, queues: Iterable[MessageQueue] | None = None) -> dict[MessageQueue, int]:
        """Where the application is, of these queues or of all; -1 where it got nothing yet."""
        with self._changed:
            wanted = self._queues if queues is None else [queue for queue in queues if queue in self._queues]
            return {
                queue: self._queues[queue].consume_offset
                for queue in wanted
                if not self._queues[queue].process_queue.is_dropped
            }

    def close(self) -> None:
        """Has nothing any more; who waits in `take` waits no more."""
        with self._changed:
            self._exchange(list(self._queues), (), {})
            self._is_closed = True
            self._changed.notify_all()
            self._on_arrival()

    def _wait(self, deadline: float) -> bool:
        while not self._cache and not self._is_closed:
            left = deadline - self._clock()
            if left <= 0:
                break
            self._changed.wait(left)
        return bool(self._cache)

    def _exchange(
        self,
        gone: Iterable[MessageQueue],
        mine: Collection[MessageQueue],
        process_queues: Mapping[MessageQueue, LiteQueue],
    ) -> tuple[list[AssignedQueue], list[AssignedQueue]]:
        removed = [self._queues.pop(queue) for queue in gone]
        for assigned in removed:
            assigned.is_dropped = assigned.process_queue.is_dropped = True
            self._clear(assigned)
        added = []
        for queue in sorted(set(mine) - self._queues.keys()):
            found = process_queues.get(queue)
            self._queues[queue] = AssignedQueue(queue, LiteQueue() if found is None else found)
            added.append(self._queues[queue])
        return added, removed

    def _clear(self, assigned: AssignedQueue) -> None:
        assigned.process_queue.clear()
        self._cache = deque(batch for batch in self._cache if batch.process_queue is not assigned.process_queue)

    def _is_current(self, assigned: AssignedQueue, epoch: int) -> bool:
        return not assigned.is_dropped and not assigned.process_queue.is_dropped and assigned.epoch == epoch


def _nobody() -> None:
    """Waits for nothing."""
