"""The messages of a queue that were pulled and are not consumed yet.

Source: RocketMQ's `ProcessQueue`, `ProcessQueueInfo`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

from rmqfast._native import MessageView
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

#: Fewer consumed messages are reported together with the next ones.
_FEW = 8
#: Seconds for which a confirmed lock is valid (`rocketmq.client.rebalance.lockMaxLiveTime`).
LOCK_MAX_LIVE_TIME = 30.0


class ProcessQueue:
    """The buffered messages of one queue, for any order of consumption, and the state of its pulls and its lock.

    Each call is atomic.

    Args:
        clock: Returns monotonic seconds.
        wall_clock: Returns seconds since 1970, for administrators.

    Attributes:
        is_dropped: Whether the queue no longer belongs to this client, so that consumption has no effect.
        is_locked: Whether the broker has locked the queue for this client.
        last_lock: Time of the last confirmation of the lock, by `clock`.
        last_pull_timestamp: Time of the last answer to a pull, by `clock`.
        last_consume_timestamp: Time of the last consumption, in seconds since 1970.
        is_leaving: Whether a release of the queue is pending; if the queue stays here, it is assigned again.
        epoch: The native puller's number of the queue; 0 before messages arrive.
        try_unlock_times: Number of failed unlocks because a listener was running.
        consume_lock: Held while messages are consumed in order.
        queue_offset_max: Offset of the last message that arrived; -1 before the first.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, wall_clock: Callable[[], float] = time.time) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._lock = new_lock()
        self._runs: deque[MessageRun] = deque()
        self._count = self._size = self._freed_count = self._freed_size = self.epoch = 0
        self.queue_offset_max: int = -1
        self.is_dropped = self.is_leaving = self.is_locked = False
        # a new queue counts as just locked, because the rebalance has locked it
        self.last_lock: float = clock()
        self.last_pull_timestamp: float = self.last_lock
        self.last_consume_timestamp: float = wall_clock()
        self.try_unlock_times = 0
        self.consume_lock: Final = new_lock()

    @property
    def count(self) -> int:
        """Number of messages that are not consumed yet, including those that a listener has."""
        return self._count

    @property
    def size(self) -> int:
        """Bytes of all pull answers that still contain an unconsumed message."""
        return self._size

    @property
    def span(self) -> int:
        """The last minus the first offset of the messages that are not consumed yet."""
        first, last = self.offsets()
        return last - first

    def is_pull_expired(self) -> bool:
        """Whether pulls have ended. Java also checks the time, since its pulls may get lost."""
        return self.is_leaving

    @property
    def is_lock_expired(self) -> bool:
        """Whether the last confirmation of the lock by the broker is older than 30 seconds."""
        return self._clock() - self.last_lock > LOCK_MAX_LIVE_TIME

    def put(self, messages: Sequence[MessageView], size: int = 0) -> list[MessageRun]:
        """Adds messages by ascending offset, without duplicates. Returns the new messages in one or more runs."""
        if not messages:
            self.free(0, size)
            return []
        last = messages[-1].queue_offset
        with self._lock:
            # the usual case: messages arrive in order
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
        """Removes consumed messages, given by their indexes in a run of `put`. Returns the offset to commit.

        Returns the offset to commit: the first unconsumed one, the one after the last if all are consumed, -1 if it was
        empty.
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
                # the first run determines the offset to commit
                while runs and not runs[0].left:
                    runs.popleft()
                # a fully consumed run has freed its messages, so it has no last offset
                while runs and not runs[-1].left:
                    runs.pop()
            return self._position()

    def free(self, count: int, size: int) -> None:
        """Counts messages that were filtered out or are duplicates as consumed."""
        with self._lock:
            self._freed_count += count
            self._freed_size += size

    def take_freed(self) -> tuple[int, int, int] | None:
        """Returns messages and bytes consumed since the last call, and the offset to commit. None for few messages."""
        # read without the lock: a stale value only delays the report
        if self._freed_count < _FEW and self._count:
            return None
        with self._lock:
            freed = self._freed_count, self._freed_size, self._position()
            self._freed_count = self._freed_size = 0
        return freed

    def _position(self) -> int:
        # everything before the first unconsumed message may be committed
        return self._runs[0].first_offset if self._runs else self.queue_offset_max + 1

    def offsets(self) -> tuple[int, int]:
        """Returns the first and the last offset of messages that are not consumed yet. 0 and 0 if there are none."""
        with self._lock:
            return (self._runs[0].first_offset, self._runs[-1].last_offset) if self._runs else (0, 0)

    def first(self) -> tuple[MessageRun, int] | None:
        """Returns the first message that is not consumed yet, as its run and its index there. None if there is none."""
        with self._lock:
            return (self._runs[0], self._runs[0].first) if self._runs else None

    def clear(self) -> None:
        with self._lock:
            self._runs.clear()
            self._count = self._size = 0
            self.queue_offset_max = -1

    def fill(self, info: dict[str, Any]) -> None:
        """Adds those fields of `ProcessQueueInfo` to `info` that are about messages."""
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
        """Returns the fields of `ProcessQueueInfo`. Times are in milliseconds since 1970."""
        # monotonic times are shown as times of day
        to_wall = self._wall_clock() - self._clock()
        info: dict[str, Any] = {
            "commitOffset": commit_offset,
            "locked": self.is_locked,
            "tryUnlockTimes": self.try_unlock_times,
            "lastLockTimestamp": int((self.last_lock + to_wall) * 1000),
            # misspelled as in RocketMQ
            "droped": self.is_dropped,
            "lastPullTimestamp": int((self.last_pull_timestamp + to_wall) * 1000),
            "lastConsumeTimestamp": int(self.last_consume_timestamp * 1000),
        }
        self.fill(info)
        return info

    def _insert(self, messages: Sequence[MessageView], size: int) -> list[MessageRun]:
        """Inserts messages between present ones. Returns their runs. Needed if a truncated queue uses offsets again."""
        there = {
            message.queue_offset
            for run in self._runs
            for index, message in enumerate(run.messages)
            if not run.is_done(index)
        }
        missing = [message for message in messages if message.queue_offset not in there]
        # messages between the offsets of others become runs of their own, so that runs do not overlap
        new = [MessageRun([message], size // len(messages)) for message in missing]
        old = [run for run in self._runs if run.left]
        self._runs = deque(sorted([*old, *new], key=lambda run: run.first_offset))
        return new


_offset = attrgetter("queue_offset")


class OrderlyProcessQueue(ProcessQueue):
    """The buffered messages of one queue, for consumption in order.

    Attributes:
        is_consuming: Whether a consumer takes messages, or was asked to.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, wall_clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock, wall_clock)
        self._waiting: deque[MessageView] = deque()
        self._taken: dict[int, MessageView] = {}
        self._sizes: dict[int, int] = {}
        self.is_consuming: bool = False

    def put(self, messages: Sequence[MessageView], size: int = 0) -> list[MessageRun]:
        if not messages:
            self.free(0, size)
            return []
        # `size` is that of the whole answer: each message counts as an equal share
        share = size // len(messages)
        with self._lock:
            new = messages
            if messages[0].queue_offset > self.queue_offset_max:
                self._waiting.extend(messages)
            else:
                # the queue was truncated, and its offsets were written again
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
        with self._lock:
            if self.is_consuming or not self._waiting:
                return False
            self.is_consuming = True
            return True

    def take(self, count: int) -> tuple[MessageView, ...]:
        """Takes and returns the next messages, at most `count`. If there are none, consumption of the queue ends."""
        self.last_consume_timestamp: float = self._wall_clock()
        with self._lock:
            waiting = self._waiting
            taken = tuple([waiting.popleft() for _ in range(min(count, len(waiting)))])
            self._taken.update((message.queue_offset, message) for message in taken)
            if not taken:
                # under the lock, so that messages put afterwards start a new consumer
                self.is_consuming = False
        return taken

    def commit(self) -> int:
        """Removes all messages taken. Returns the offset to commit, or -1 if no messages were taken."""
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
        with self._lock:
            self._put_back(list(self._taken.values()))

    def make_to_consume_again(self, messages: Sequence[MessageView]) -> None:
        with self._lock:
            self._put_back([message for message in messages if message.queue_offset in self._taken])

    def _position(self) -> int:
        # orderly consumption has no limit of the span, and its pulls commit nothing
        return 0

    def offsets(self) -> tuple[int, int]:
        with self._lock:
            return (self._waiting[0].queue_offset, self._waiting[-1].queue_offset) if self._waiting else (0, 0)

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()
            self._taken.clear()
            self._sizes.clear()
            self._count = self._size = 0
            self.queue_offset_max: int = -1

    def fill(self, info: dict[str, Any]) -> None:
        """Adds those fields of `ProcessQueueInfo` to `info` that are about messages, also about those taken."""
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
        # taken messages precede all waiting messages
        self._waiting.extendleft(sorted(messages, key=_offset, reverse=True))


class MessageRun:
    """Messages of a queue by ascending offset. Consumed messages are marked; when all are marked, all are freed.

    It has no lock: its `ProcessQueue` serializes access.

    Attributes:
        messages: The messages; empty once all are consumed.
        size: Bytes of the messages; 0 once all are consumed.
        left: Number of unconsumed messages.
    """

    __slots__ = ("_done", "_first", "left", "messages", "size")

    def __init__(self, messages: Sequence[MessageView], size: int = 0) -> None:
        self.messages: tuple[MessageView, ...] = tuple(messages)
        self.size: int = size
        self.left: int = len(self.messages)
        # one byte per message: `count` and `find` are fast
        self._done = bytearray(self.left)
        self._first = 0

    def finish(self, indexes: Sequence[int]) -> int:
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
            # frees the memory of the pull's answer
            self.messages = ()
        elif done[self._first]:
            self._first = done.find(0, self._first)
        return count

    def is_done(self, index: int) -> bool:
        return bool(self._done[index])

    @property
    def first(self) -> int:
        return self._first

    @property
    def first_offset(self) -> int:
        return self.messages[self._first].queue_offset

    @property
    def last_offset(self) -> int:
        return self.messages[self._done.rfind(0)].queue_offset
