"""Keeps the queue locks of orderly consumers, and answers LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.

Source: `RebalanceLockManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rmqfast.message import MessageQueue
from rmqfast.remoting import Processor, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.protocol.heartbeat_data import checked_name
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.threads import new_lock

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
        self._lock = new_lock()
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


#: Queues that one request may name.
MAX_QUEUES = 10_000


class QueueLockProcessor:
    """Gives queues to those who consume them in order."""

    def __init__(self, locks: QueueLockManager, now: Callable[[], int]) -> None:
        self._locks = locks
        self._now = now

    def processors(self) -> dict[int, Processor]:
        """What is answered here, by request code."""
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def lock(self, request: Request) -> Response:
        """41 LOCK_BATCH_MQ: answers which of the queues the client has now."""
        body = QueuesOfClient.of_body(request.body)
        locked = self._locks.lock(body.group, body.client_id, body.queues, now=self._now())
        return Response(body=encode({"lockOKMQSet": locked}))

    def unlock(self, request: Request) -> Response:
        """42 UNLOCK_BATCH_MQ."""
        body = QueuesOfClient.of_body(request.body)
        self._locks.unlock(body.group, body.client_id, body.queues)
        return Response()


@dataclass(frozen=True, slots=True)
class QueuesOfClient:
    """The body of both requests.

    Source: `LockBatchRequestBody`, `UnlockBatchRequestBody`.
    """

    group: str
    client_id: str
    queues: list[MessageQueue]

    @classmethod
    def of_body(cls, body: bytes) -> QueuesOfClient:
        """What a body says.

        Raises:
            ResponseError: A member of another type, or too many queues.
        """
        members = JsonObject.of_body(body)
        group = checked_name("group", members.text("consumerGroup"))
        queues = members.queues("mqSet", most=MAX_QUEUES)
        for queue in queues:
            checked_name("topic", queue.topic)
        return cls(group, members.text("clientId"), queues)
