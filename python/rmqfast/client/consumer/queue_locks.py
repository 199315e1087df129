"""Locks queues at their brokers, so that only one consumer of an orderly group consumes each queue.

Source: RocketMQ's `RebalanceImpl`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from rmqfast.client.instance import ClientInstance
from rmqfast.errors import RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.message import MessageQueue
from rmqfast.system import monotonic

_log = logger_of(__name__)
# Java's timeout: a rebalance locks one queue after the other
_TIMEOUT = 1.0


class ProcessQueueLike(Protocol):
    """An assigned queue, with the state of its lock and whether it must be assigned again.

    Attributes:
        is_dropped: Whether the queue no longer belongs to this member.
        is_locked: Whether this member believes that it holds the lock.
        last_lock: Time of the lock's last renewal, by `time.monotonic`.
    """

    is_dropped: bool
    is_locked: bool
    last_lock: float

    def is_pull_expired(self) -> bool:
        """Whether the queue must be assigned again because it is no longer pulled."""


class QueueLocks:
    """Locks and unlocks queues at their masters. Calls `on_changed` when a lock is gained or lost."""

    def __init__(
        self, instance: ClientInstance, group: str, process_queues: Mapping[MessageQueue, ProcessQueueLike]
    ) -> None:
        self._instance, self._group, self._process_queues = instance, group, process_queues
        self.on_changed: Callable[[MessageQueue], object] = lambda _queue: None
        self._given_up: set[MessageQueue] = set()
        self._unlocked_here: set[MessageQueue] = set()
        # held until an unlock is sent, so that a following lock request is sent after it
        self._unlocking = QuietLock(reentrant=True)

    def lock(self, queue: MessageQueue) -> bool:
        """Locks one queue. Returns False if another consumer has the lock, or if the broker does not answer."""
        with self._unlocking:
            self._given_up.discard(queue)
            self._unlocked_here.discard(queue)
        return queue in self._lock_batch(queue.broker_name, [queue])

    def lock_all(self) -> None:
        with self._unlocking:
            mine = [queue for queue in list(self._process_queues) if queue not in self._unlocked_here]
        for broker_name, queues in _by_broker(mine).items():
            self._lock_batch(broker_name, queues)
        with self._unlocking:
            # this request may lock a queue that was unlocked meanwhile; then nobody would consume it for a minute
            for queue in self._unlocked_here.intersection(mine):
                self.unlock(queue)

    def unlock(self, queue: MessageQueue, *, oneway: bool = True) -> None:
        with self._unlocking:
            self._unlocked_here.add(queue)
            if oneway:
                self._unlock_batch(queue.broker_name, [queue], oneway=True)
                return
        self._unlock_batch(queue.broker_name, [queue], oneway=False)

    def give_up(self, queue: MessageQueue) -> None:
        """Marks a queue for `unlock_given_up`. Locking the queue again removes the mark."""
        with self._unlocking:
            self._given_up.add(queue)

    def unlock_given_up(self, *queues: MessageQueue) -> None:
        """Unlocks those of the given queues that `give_up` has marked. Without arguments, unlocks all marked queues."""
        with self._unlocking:
            due = self._given_up.intersection(queues) if queues else self._given_up.copy()
            self._given_up -= due
            for queue in sorted(due):
                self.unlock(queue)

    def _lock_batch(self, broker_name: str, queues: list[MessageQueue]) -> set[MessageQueue]:
        address = self._instance.routes.publish_address(broker_name)
        if address is None:
            return set()
        try:
            locked = self._instance.api.lock_batch(
                address, self._group, self._instance.client_id, queues, timeout=_TIMEOUT
            )
        except RmqError as error:
            _log.warning("group %s: %s does not lock queues: %s", self._group, broker_name, error)
            return set()
        for queue in queues:
            self._note(queue, is_locked=queue in locked)
        return locked

    def _note(self, queue: MessageQueue, *, is_locked: bool) -> None:
        process_queue = self._process_queues.get(queue)
        if process_queue is None:
            return
        if is_locked != process_queue.is_locked:
            _log.info("group %s: %s is %s", self._group, queue, "locked" if is_locked else "not locked any more")
            process_queue.is_locked = is_locked
            self.on_changed(queue)
        if is_locked:
            process_queue.last_lock = monotonic()

    def _unlock_batch(self, broker_name: str, queues: list[MessageQueue], *, oneway: bool) -> None:
        address = self._instance.routes.publish_address(broker_name)
        if address is None:
            return
        client_id = self._instance.client_id
        try:
            self._instance.api.unlock_batch(address, self._group, client_id, queues, oneway=oneway, timeout=_TIMEOUT)
        except RmqError as error:
            _log.warning("group %s: %s does not unlock queues: %s", self._group, broker_name, error)
            return
        for queue in queues:
            self._note(queue, is_locked=False)


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        by_broker[queue.broker_name].append(queue)
    return by_broker
