"""Who may consume a queue in order.

Source: `RebalanceLockManager`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from rmqfast.message import MessageQueue

#: Milliseconds for which a lock holds (`rocketmq.broker.rebalance.lockMaxLiveTime`).
LIVE_MS = 60_000


@dataclass(frozen=True, slots=True)
class QueueLock:
    """A lock that a client has.

    Attributes:
        last_update: Milliseconds since 1970 at which it last asked for it.

    Source: `RebalanceLockManager.LockEntry`.
    """

    client_id: str
    last_update: int

    def is_for(self, client_id: str, now: int) -> bool:
        """Whether a client may have it: its own, or one that nobody has asked for in 60 seconds."""
        return self.client_id == client_id or now - self.last_update > LIVE_MS


class QueueLockManager:
    """The locks by group and queue. None is given back when a client disconnects: it runs out.

    Example:
        >>> locks, queue = QueueLockManager(), MessageQueue("t", "b", 0)
        >>> locks.lock("g", "one", [queue], now=0), locks.lock("g", "two", [queue], now=60_000)
        ([MessageQueue(topic='t', broker_name='b', queue_id=0)], [])
        >>> locks.lock("g", "two", [queue], now=60_001) == [queue]
        True
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: dict[str, dict[MessageQueue, QueueLock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[MessageQueue], *, now: int) -> list[MessageQueue]:
        """Gives a client the queues that no other one has, for 60 seconds.

        Returns:
            The queues that it has now, of those asked for.

        Source: `RebalanceLockManager.tryLockBatch`.
        """
        locked = []
        with self._lock:
            locks = self._groups.setdefault(group, {})
            for queue in queues:
                lock = locks.get(queue)
                if lock is None or lock.is_for(client_id, now):
                    locks[queue] = QueueLock(client_id, now)
                    locked.append(queue)
            if not locks:
                del self._groups[group]
        return locked

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Takes back the queues that the client has.

        Source: `RebalanceLockManager.unlockBatch`.
        """
        with self._lock:
            locks = self._groups.get(group, {})
            for queue in queues:
                lock = locks.get(queue)
                # only its owner gives a lock back: a late unlock must not take it from the next one
                if lock is not None and lock.client_id == client_id:
                    del locks[queue]
            if not locks:
                self._groups.pop(group, None)

    def scan(self, now: int) -> None:
        """Forgets locks that ran out: whoever asks next gets the queue with or without them."""
        with self._lock:
            for group, locks in list(self._groups.items()):
                for queue in [queue for queue, lock in locks.items() if now - lock.last_update > LIVE_MS]:
                    del locks[queue]
                if not locks:
                    del self._groups[group]

    def holder(self, group: str, queue: MessageQueue) -> QueueLock | None:
        """The lock of a queue, which may have run out."""
        with self._lock:
            return self._groups.get(group, {}).get(queue)
