"""What a consumer has of a queue that is consumed in order.

Source: `ProcessQueue`, its `takeMessages`, `commit` and `rollback`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from rmqfast._native import MessageView
from rmqfast.client.push.process_queue import MessageRun, ProcessQueue
from rmqfast.system import monotonic

_offset = attrgetter("queue_offset")


class OrderlyProcessQueue(ProcessQueue):
    """Messages of one queue in its order; those that were taken are done or come back.

    Attributes:
        is_consuming: Whether somebody takes messages, or is asked to.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, wall_clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock, wall_clock)
        self._waiting: deque[MessageView] = deque()
        self._taken: dict[int, MessageView] = {}
        self._sizes: dict[int, int] = {}
        self.is_consuming: bool = False

    def put(self, messages: Sequence[MessageView], size: int = 0) -> list[MessageRun]:
        """Takes messages, as `ProcessQueue.put`; nothing is returned as they are taken by `take`."""
        if not messages:
            self.free(0, size)
            return []
        # the size is that of the answer: each of its messages counts alike
        share = size // len(messages)
        with self._lock:
            new = messages
            if messages[0].queue_offset > self.queue_offset_max:
                self._waiting.extend(messages)
            else:
                # a queue that was cut and written anew: offsets come once more
                there = set(map(_offset, self._waiting)) | self._taken.keys()
                new = [message for message in messages if message.queue_offset not in there]
                self._waiting = deque(sorted([*self._waiting, *new], key=_offset))
            self._freed_count += len(messages) - len(new)
            self._freed_size += size - share * len(new)
            if not new:
                return []
            self.queue_offset_max = new[-1].queue_offset
            self._sizes.update([(message.queue_offset, share) for message in new])
            self._count += len(new)
            self._size += share * len(new)
        return []

    def begin_consuming(self) -> bool:
        """Whether somebody is to be asked to take messages: there are some, and nobody is.

        Source: `ProcessQueue.putMessage`, what it returns.
        """
        with self._lock:
            if self.is_consuming or not self._waiting:
                return False
            self.is_consuming = True
            return True

    def take(self, count: int) -> tuple[MessageView, ...]:
        """The next messages; where there are none, nobody is consuming any more.

        Source: `ProcessQueue.takeMessages`.
        """
        self.last_consume_timestamp: float = self._wall_clock()
        with self._lock:
            waiting = self._waiting
            taken = tuple([waiting.popleft() for _ in range(min(count, len(waiting)))])
            self._taken.update((message.queue_offset, message) for message in taken)
            if not taken:
                self.is_consuming = False
        return taken

    def commit(self) -> int:
        """All that was taken is done; where the group goes on, -1 where nothing was taken.

        Source: `ProcessQueue.commit`.
        """
        with self._lock:
            if not self._taken:
                return -1
            next_offset = max(self._taken) + 1
            size = sum([self._sizes.pop(offset, 0) for offset in self._taken])
            self._count -= len(self._taken)
            self._size -= size
            self._freed_count += len(self._taken)
            self._freed_size += size
            self._taken.clear()
            return next_offset

    def rollback(self) -> None:
        """All that was taken comes back.

        Source: `ProcessQueue.rollback`.
        """
        with self._lock:
            self._put_back(list(self._taken.values()))

    def make_to_consume_again(self, messages: Sequence[MessageView]) -> None:
        """Messages that were taken come back, as they are given.

        Source: `ProcessQueue.makeMessageToConsumeAgain`.
        """
        with self._lock:
            self._put_back([message for message in messages if message.queue_offset in self._taken])

    def has_messages(self) -> bool:
        """Whether there are messages that were not taken.

        Source: `ProcessQueue.hasTempMessage`.
        """
        return bool(self._waiting)

    def _position(self) -> int:
        return 0  # what is consumed in order may be as far apart as it likes, and its pulls commit nothing

    def offsets(self) -> tuple[int, int]:
        """The first and the last offset of those that wait; 0 and 0 where there is none."""
        with self._lock:
            return (self._waiting[0].queue_offset, self._waiting[-1].queue_offset) if self._waiting else (0, 0)

    def clear(self) -> None:
        """Forgets all messages."""
        with self._lock:
            self._waiting.clear()
            self._taken.clear()
            self._sizes.clear()
            self._count = self._size = 0
            self.queue_offset_max: int = -1

    def fill(self, info: dict[str, Any]) -> None:
        """Adds what `ProcessQueueInfo` says of messages: those that were taken are its transaction."""
        super().fill(info)
        with self._lock:
            taken = sorted(self._taken)
        info |= {
            "transactionMsgMinOffset": taken[0] if taken else 0,
            "transactionMsgMaxOffset": taken[-1] if taken else 0,
            "transactionMsgCount": len(taken),
        }

    def _put_back(self, messages: list[MessageView]) -> None:
        for message in messages:
            del self._taken[message.queue_offset]
        # taken messages stand before all that wait
        self._waiting.extendleft(sorted(messages, key=_offset, reverse=True))
