"""What one pull brought, and what waits of one queue.

Source: `DefaultLitePullConsumerImpl.ConsumeRequest`, `ProcessQueue`.
"""

from __future__ import annotations

import time
from collections import deque

from rmqfast._native import Fetched
from rmqfast.message import MessageQueue


class CachedBatch:
    """The messages of one pull, which wait for `poll`.

    Attributes:
        queue: The queue, its topic with its namespace.
        process_queue: What waits of it.
        epoch: That of the queue when it was pulled.
        pulled: What has the messages.
        count: How many; at least one.
        size: Bytes of them.
        first: Queue offset of the first one.
        last: Queue offset of the last one.

    Source: `DefaultLitePullConsumerImpl.ConsumeRequest`.
    """

    __slots__ = ("count", "epoch", "first", "last", "process_queue", "pulled", "queue", "size")

    def __init__(self, queue: MessageQueue, process_queue: LiteQueue, epoch: int, pulled: Fetched) -> None:
        offsets = pulled.offsets
        self.first, self.last = offsets or (pulled.begin_offset, pulled.next_begin_offset - 1)
        self.queue, self.process_queue, self.epoch, self.pulled = queue, process_queue, epoch, pulled
        self.count, self.size = len(pulled), pulled.size


class LiteQueue:
    """What waits of one queue, oldest first.

    Attributes:
        is_dropped: Whether another member has the queue now.
        is_locked: Never: nothing here is orderly by a lock.
        last_lock: When it was made, by `time.monotonic`.
        count: Messages that wait.
        size: Bytes of them.

    Source: `ProcessQueue`.
    """

    def __init__(self) -> None:
        self.is_dropped = self.is_locked = False
        self.last_lock = time.monotonic()
        self.count = self.size = 0
        self._batches: deque[CachedBatch] = deque()

    def is_pull_expired(self) -> bool:
        """Never looked at: the application pulls when it wants."""
        return False

    @property
    def span(self) -> int:
        """Between the offsets of the first and the last message that waits.

        Source: `ProcessQueue.getMaxSpan`.
        """
        return self._batches[-1].last - self._batches[0].first if self._batches else 0

    def put(self, batch: CachedBatch) -> None:
        """One more pull has brought something.

        Source: `ProcessQueue.putMessage`.
        """
        self._batches.append(batch)
        self.count += batch.count
        self.size += batch.size

    def put_first(self, batch: CachedBatch) -> None:
        """A batch that was removed waits again, before the others."""
        self._batches.appendleft(batch)
        self.count += batch.count
        self.size += batch.size

    def remove(self, batch: CachedBatch) -> int:
        """A batch waits no more.

        Returns:
            Where to go on: at the first message that waits, or behind the last that did.

        Source: `ProcessQueue.removeMessage`.
        """
        self._batches.remove(batch)
        self.count -= batch.count
        self.size -= batch.size
        return self._batches[0].first if self._batches else batch.last + 1

    def clear(self) -> None:
        """Nothing waits any more.

        Source: `ProcessQueue.clear`.
        """
        self._batches.clear()
        self.count = self.size = 0
