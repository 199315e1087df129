"""What a consumer has of one queue: messages that were pulled and are not done.

Source: `ProcessQueue`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from rmqfast._native import MessageView
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

#: Fewer messages that are done are noted together with the next ones.
_FEW = 8
#: Seconds for which the broker's answer to a lock counts (`rocketmq.client.rebalance.lockMaxLiveTime`).
LOCK_MAX_LIVE_TIME = 30.0


class ProcessQueue:
    """Messages of one queue that are consumed in any order, and what rebalance and pulls note of it.

    All calls are one step to all threads.

    Args:
        clock: Seconds that never go back.
        wall_clock: Seconds since 1970, which others are shown.

    Attributes:
        is_dropped: Whether the queue is not this client's any more: what is done now has no effect.
        is_locked: Whether the broker has locked the queue for this client.
        last_lock: When it said so, by `clock`.
        last_pull_timestamp: When the last pull was answered, by `clock`.
        last_consume_timestamp: When messages were done last, in seconds since 1970.
        is_leaving: Whether it could not be given up yet, and is to be taken anew if it is this client's again.
        epoch: The native puller's number of the queue; 0 before messages came.
        try_unlock_times: How often the lock could not be given up because a listener was at work.
        consume_lock: Is held while messages are consumed in order.
        queue_offset_max: The offset of the last message that came, -1 without.

    Source: `ProcessQueue`.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, wall_clock: Callable[[], float] = time.time) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._lock = new_lock()
        self._runs: deque[MessageRun] = deque()
        self._count = self._size = self._freed_count = self._freed_size = self.epoch = 0
        self.queue_offset_max: int = -1
        self.is_dropped = self.is_leaving = self.is_locked = False
        self.last_lock: float = clock()
        self.last_pull_timestamp: float = self.last_lock
        self.last_consume_timestamp: float = wall_clock()
        self.try_unlock_times = 0
        self.consume_lock: Final = new_lock()

    @property
    def count(self) -> int:
        """How many messages there are, those that are being consumed included."""
        return self._count

    @property
    def size(self) -> int:
        """Bytes of the answers to pulls of which there still are messages."""
        return self._size

    @property
    def span(self) -> int:
        """From the first offset that is not done to the last one.

        Source: `ProcessQueue.getMaxSpan`.
        """
        first, last = self.offsets()
        return last - first

    def is_pull_expired(self) -> bool:
        """Whether there will be no pull any more. Java's looks at the time as well, as its pulls may get lost."""
        return self.is_leaving

    @property
    def is_lock_expired(self) -> bool:
        """Whether the broker did not confirm the lock for half a minute."""
        return self._clock() - self.last_lock > LOCK_MAX_LIVE_TIME

    def put(self, messages: Sequence[MessageView], size: int = 0) -> list[MessageRun]:
        """Takes messages, by ascending offset; those that are there already are left out.

        Returns:
            What is new, in one part or several.

        Source: `ProcessQueue.putMessage`.
        """
        if not messages:
            self.free(0, size)
            return []
        last = messages[-1].queue_offset
        with self._lock:
            if messages[0].queue_offset > self.queue_offset_max:
                run = MessageRun(messages, size)
                self._runs.append(run)
                new = [run]
            else:
                new = self._insert(messages, size)
            count, kept = sum([run.left for run in new]), sum([run.size for run in new])
            self._count += count
            self._size += kept
            self._freed_count += len(messages) - count
            self._freed_size += size - kept
            if new:
                self.queue_offset_max = last
        return new

    def remove(self, run: MessageRun, indexes: Sequence[int]) -> int:
        """Messages are done.

        Args:
            run: Which `put` has returned.
            indexes: Of the messages in it.

        Returns:
            Where the group goes on: the first offset that is not done, the one behind the last where all is; -1 where
            there was nothing.

        Source: `ProcessQueue.removeMessage`.
        """
        self.last_consume_timestamp = self._wall_clock()
        with self._lock:
            runs = self._runs
            if not runs:
                return -1
            done = run.finish(indexes)
            self._count -= done
            self._freed_count += done
            if not run.left:
                self._size -= run.size
                self._freed_size += run.size
                run.size = 0
                while runs and not runs[0].left:
                    runs.popleft()
                # a run that is all done has let its messages go: it has no last offset
                while runs and not runs[-1].left:
                    runs.pop()
            return self._position()

    def free(self, count: int, size: int) -> None:
        """Messages that came are nothing to be done with: nobody wants them, or they were here."""
        with self._lock:
            self._freed_count += count
            self._freed_size += size

    def take_freed(self) -> tuple[int, int, int] | None:
        """Messages and bytes that are done since the last call, and where the group goes on.

        Returns:
            `None` while there are so few that it does not pay to ask for more.
        """
        if self._freed_count < _FEW and self._count:
            return None
        with self._lock:
            freed = self._freed_count, self._freed_size, self._position()
            self._freed_count = self._freed_size = 0
        return freed

    def _position(self) -> int:
        return self._runs[0].first_offset if self._runs else self.queue_offset_max + 1

    def offsets(self) -> tuple[int, int]:
        """The first and the last offset that is not done; 0 and 0 where there is none."""
        with self._lock:
            return (self._runs[0].first_offset, self._runs[-1].last_offset) if self._runs else (0, 0)

    def first(self) -> tuple[MessageRun, int] | None:
        """Where the first message is that is not done."""
        with self._lock:
            return (self._runs[0], self._runs[0].first) if self._runs else None

    def clear(self) -> None:
        """Forgets all messages.

        Source: `ProcessQueue.clear`.
        """
        with self._lock:
            self._runs.clear()
            self._count = self._size = 0
            self.queue_offset_max = -1

    def fill(self, info: dict[str, Any]) -> None:
        """Adds what `ProcessQueueInfo` says of messages.

        Source: `ProcessQueue.fillProcessQueueInfo`.
        """
        first, last = self.offsets()
        info |= {
            "cachedMsgMinOffset": first,
            "cachedMsgMaxOffset": last,
            "cachedMsgCount": self.count,
            "cachedMsgSizeInMiB": self.size >> 20,
            "transactionMsgMinOffset": 0,
            "transactionMsgMaxOffset": 0,
            "transactionMsgCount": 0,
        }

    def info(self, commit_offset: int) -> dict[str, Any]:
        """The members of `ProcessQueueInfo`, times in milliseconds since 1970.

        Source: `ProcessQueueInfo`.
        """
        to_wall = self._wall_clock() - self._clock()
        info: dict[str, Any] = {
            "commitOffset": commit_offset,
            "locked": self.is_locked,
            "tryUnlockTimes": self.try_unlock_times,
            "lastLockTimestamp": int((self.last_lock + to_wall) * 1000),
            "droped": self.is_dropped,
            "lastPullTimestamp": int((self.last_pull_timestamp + to_wall) * 1000),
            "lastConsumeTimestamp": int(self.last_consume_timestamp * 1000),
        }
        self.fill(info)
        return info

    def _insert(self, messages: Sequence[MessageView], size: int) -> list[MessageRun]:
        """Puts messages in their places that do not come behind all others: a queue that was cut and written anew."""
        there = {
            message.queue_offset
            for run in self._runs
            for index, message in enumerate(run.messages)
            if not run.is_done(index)
        }
        missing = [message for message in messages if message.queue_offset not in there]
        # what may stand between others' offsets is a run of its own, so that runs do not overlap
        new = [MessageRun([message], size // len(messages)) for message in missing]
        old = [run for run in self._runs if run.left]
        self._runs = deque(sorted([*old, *new], key=lambda run: run.first_offset))
        return new


class MessageRun:
    """Messages of a queue, by ascending offset; what is done is marked, and all of them are let go together.

    Knows no lock: its `ProcessQueue` has one.

    Attributes:
        messages: The messages; empty once all are done.
        size: Bytes that they take; 0 once all are done.
        left: How many are not done.
    """

    __slots__ = ("_done", "_first", "left", "messages", "size")

    def __init__(self, messages: Sequence[MessageView], size: int = 0) -> None:
        self.messages: tuple[MessageView, ...] = tuple(messages)
        self.size: int = size
        self.left: int = len(self.messages)
        self._done = bytearray(self.left)
        self._first = 0

    def finish(self, indexes: Sequence[int]) -> int:
        """Marks messages as done; how many of them were not done before."""
        done, count = self._done, 0
        if isinstance(indexes, range) and len(indexes) > 1:
            start, stop = indexes.start, indexes.stop
            count = done.count(0, start, stop)
            done[start:stop] = b"\x01" * (stop - start)
        else:
            for index in indexes:
                if not done[index]:
                    done[index] = 1
                    count += 1
        self.left -= count
        if not self.left:
            self.messages = ()
        elif done[self._first]:
            self._first = done.find(0, self._first)
        return count

    def is_done(self, index: int) -> bool:
        """Whether a message is done."""
        return bool(self._done[index])

    @property
    def first(self) -> int:
        """The index of the first message that is not done, where there is one."""
        return self._first

    @property
    def first_offset(self) -> int:
        """The offset of the first message that is not done, where there is one."""
        return self.messages[self._first].queue_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last message that is not done, where there is one."""
        return self.messages[self._done.rfind(0)].queue_offset
