"""Keeps the queue locks of orderly consumers, and answers LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.

Source: RocketMQ's `RebalanceLockManager`, `LockBatchRequestBody`, `UnlockBatchRequestBody`.
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

#: Milliseconds until a lock expires (`rocketmq.broker.rebalance.lockMaxLiveTime`).
LIVE_MS = 60_000


@dataclass(frozen=True, slots=True)
class QueueLock:
    """The lock of a queue. `last_update` is the owner's last request for it, in milliseconds since 1970."""

    client_id: str
    last_update: int

    def is_for(self, client_id: str, now: int) -> bool:
        """Whether a client may have the lock: as its owner, or 60 seconds after the owner's last request."""
        return self.client_id == client_id or now - self.last_update > LIVE_MS


class QueueLockManager:
    """Locks by group and queue. A client that disconnects keeps its locks until they expire."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._groups: dict[str, dict[MessageQueue, QueueLock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[MessageQueue], *, now: int) -> list[MessageQueue]:
        """Locks queues for a client for 60 seconds. Returns the queues that the client holds now."""
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
        with self._lock:
            locks = self._groups.get(group, {})
            for queue in queues:
                lock = locks.get(queue)
                # Only the owner may unlock: a late unlock must not release the next owner's lock.
                if lock is not None and lock.client_id == client_id:
                    del locks[queue]
            if not locks:
                self._groups.pop(group, None)

    def scan(self, now: int) -> int:
        """Removes expired locks. Returns their number."""
        count = 0
        with self._lock:
            for group, locks in list(self._groups.items()):
                expired = [queue for queue, lock in locks.items() if now - lock.last_update > LIVE_MS]
                for queue in expired:
                    del locks[queue]
                count += len(expired)
                if not locks:
                    del self._groups[group]
        return count


#: Limit of queues per request.
MAX_QUEUES = 10_000


class QueueLockProcessor:
    """Answers requests 41 and 42, with which orderly consumers lock and unlock queues."""

    def __init__(self, locks: QueueLockManager, now: Callable[[], int]) -> None:
        self._locks = locks
        self._now = now

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def lock(self, request: Request) -> Response:
        body = QueuesOfClient.of_body(request.body)
        locked = self._locks.lock(body.group, body.client_id, body.queues, now=self._now())
        return Response(body=encode({"lockOKMQSet": locked}))

    def unlock(self, request: Request) -> Response:
        body = QueuesOfClient.of_body(request.body)
        self._locks.unlock(body.group, body.client_id, body.queues)
        return Response()


@dataclass(frozen=True, slots=True)
class QueuesOfClient:
    group: str
    client_id: str
    queues: list[MessageQueue]

    @classmethod
    def of_body(cls, body: bytes) -> QueuesOfClient:
        members = JsonObject.of_body(body)
        group = checked_name("group", members.text("consumerGroup"))
        queues = members.queues("mqSet", most=MAX_QUEUES)
        for queue in queues:
            checked_name("topic", queue.topic)
        return cls(group, members.text("clientId"), queues)
