"""Pulls the queues of one broker, many pulls under way at once.

Source: `DefaultLitePullConsumerImpl.PullTaskImpl`, of which there is one for each queue, with one pull under way.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from rmqfast._native import Fetched, PullerEvent
from rmqfast.client.lite_pull.assigned_queues import AssignedQueue, AssignedQueues
from rmqfast.client.lite_pull.cached_batch import CachedBatch
from rmqfast.errors import ChannelClosedError, RmqError, plain_remark
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logging.getLogger(__name__)

_WAIT = 60.0
_MOST = 64


class NativePuller(Protocol):
    """What pulls; as `rmqfast._native.Puller`."""

    def assign(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        expression: str = "*",
        expression_type: str = "TAG",
        sub_version: int = 0,
        tags: frozenset[str] | set[str] | None = None,
        paused: bool = False,
    ) -> int:
        """Pulls a queue from an offset on, at once or when it is resumed; gives the epoch of what comes."""

    def remove(self, topic: str, queue_id: int) -> bool:
        """Pulls a queue no more."""

    def seek(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Goes on at another offset; gives the new epoch."""

    def pause(self, topic: str, queue_id: int) -> bool:
        """Asks no more for a queue."""

    def resume(self, topic: str, queue_id: int) -> bool:
        """Asks for a queue again."""

    def take(self, timeout: float, *, max_items: int = 64) -> list[Fetched | PullerEvent]:
        """What came; it counts as held until the next call."""

    def close(self) -> None:
        """Ends."""


class PulledQueue:
    """A queue that is pulled.

    Attributes:
        assigned: Where what comes goes.
        epoch: That of the assigned queue when it was begun.
        native_epoch: The puller's: what comes with another one is of no use.
        is_held: Whether the puller was told to ask no more, because the application wants nothing or too much waits.
    """

    __slots__ = ("assigned", "epoch", "is_held", "native_epoch")

    def __init__(self, assigned: AssignedQueue, epoch: int, native_epoch: int, *, is_held: bool) -> None:
        self.assigned, self.epoch, self.native_epoch, self.is_held = assigned, epoch, native_epoch, is_held


class BrokerPuller:
    """Pulls queues of one broker, and has what comes wait for `poll`.

    Args:
        native: What pulls.
        cache: Where what comes waits.
        on_suggested: Is told the id of the broker that a queue should be pulled from next.
        on_lost: Is told that the connection was lost.
    """

    def __init__(
        self,
        native: NativePuller,
        cache: AssignedQueues,
        on_suggested: Callable[[AssignedQueue, int], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._native, self._cache = native, cache
        self._on_suggested, self._on_lost = on_suggested, on_lost
        self._lock = threading.Lock()
        self._pulled: dict[tuple[str, int], PulledQueue] = {}
        #: Those of which nothing is asked for now.
        self._held: set[tuple[str, int]] = set()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to take what comes, on a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="rmqfast-lite-pull-taker", daemon=True)
        self._thread.start()

    def begin(self, assigned: AssignedQueue, epoch: int, subscription: SubscriptionData) -> bool:
        """Pulls a queue from its pull offset on; what was there of it is of no use any more.

        Args:
            assigned: The queue.
            epoch: Its epoch when this was asked for.
            subscription: What is wanted of it.

        Returns:
            Whether it does: not where the queue is gone, or another place was sought meanwhile.
        """
        queue, is_tag = assigned.queue, subscription.is_tag_type
        with self._lock:
            if not self._cache.is_current(assigned, epoch):
                return False
            # told with the assignment: one pull would go out before a pause that comes behind it
            is_held = self._shall_be_held(assigned)
            native_epoch = self._native.assign(
                queue.topic,
                queue.queue_id,
                assigned.pull_offset,
                expression=subscription.sub_string,
                expression_type=subscription.expression_type,
                sub_version=0 if is_tag else subscription.sub_version,
                tags=frozenset(subscription.tags_set) if is_tag and subscription.tags_set else None,
                paused=is_held,
            )
            pulled = self._pulled[_key(queue)] = PulledQueue(assigned, epoch, native_epoch, is_held=is_held)
            (self._held.add if is_held else self._held.discard)(_key(queue))
            self._see_to(pulled)
            return True

    def end(self, queue: MessageQueue) -> bool:
        """Pulls a queue no more; whether it did."""
        with self._lock:
            self._native.remove(queue.topic, queue.queue_id)
            self._held.discard(_key(queue))
            return self._pulled.pop(_key(queue), None) is not None

    def see_to(self, queues: list[AssignedQueue] | None = None) -> None:
        """Looks whether queues may be asked for again, or no more: what waits has become less, or one was paused.

        Args:
            queues: Which; all of which nothing is asked unless given.
        """
        if queues is None and not self._held:
            return
        with self._lock:
            keys = list(self._held) if queues is None else [_key(assigned.queue) for assigned in queues]
            for key in keys:
                found = self._pulled.get(key)
                if found is not None:
                    self._see_to(found)

    def close(self, timeout: float = 0.0) -> None:
        """Ends, and waits for its thread.

        Args:
            timeout: How long to wait, in seconds.
        """
        self._native.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def take_all(self, items: Iterable[Fetched | PullerEvent]) -> None:
        """Takes what came together, and has no queue asked for that is full because of it.

        Until the next `take` of the native puller all of `items` counts there as held, so that what it has of a queue,
        these included, fits into its allowance: no more than that comes behind the threshold.
        """
        for item in items:
            try:
                self.take(item)
            except Exception:  # noqa: BLE001 - the other queues have to go on
                _log.exception("what a pull has brought could not be taken")
        if self._cache.is_full_in_all():
            with self._lock:
                for pulled in self._pulled.values():
                    self._see_to(pulled)

    def take(self, item: Fetched | PullerEvent) -> None:
        """Takes one answer, or what befell the connection."""
        if isinstance(item, PullerEvent):
            self._note(item)
            return
        queue = item.queue
        with self._lock:
            pulled = self._pulled.get(_key(queue))
            if pulled is None or pulled.native_epoch != item.epoch:
                return
            if item.status == "FAILED":
                _log.warning("a pull of %s failed, and is tried again: %s", queue, plain_remark(item.remark))
                return
            batch = _batch(pulled, item)
            if not self._cache.advance(pulled.assigned, pulled.epoch, item.next_begin_offset, batch):
                return
            if item.status == "OFFSET_ILLEGAL":
                self._correct(pulled, item)
            self._see_to(pulled)
        self._on_suggested(pulled.assigned, item.suggested_broker_id)

    def _correct(self, pulled: PulledQueue, item: Fetched) -> None:
        queue, bounds = item.queue, (item.min_offset, item.max_offset)
        _log.warning(
            "%s does not have the offset %d, but %d to %d: goes on at %d",
            queue,
            item.begin_offset,
            *bounds,
            item.next_begin_offset,
        )
        epoch = self._native.seek(queue.topic, queue.queue_id, item.next_begin_offset)
        if epoch is not None:
            pulled.native_epoch = epoch

    def _see_to(self, pulled: PulledQueue) -> None:
        """Looks once more behind each change: `poll` may have emptied what was full before it could see the change."""
        assigned = pulled.assigned
        while (shall_be_held := self._shall_be_held(assigned)) != pulled.is_held:
            pulled.is_held = shall_be_held
            (self._held.add if shall_be_held else self._held.discard)(_key(assigned.queue))
            change = self._native.pause if shall_be_held else self._native.resume
            change(assigned.queue.topic, assigned.queue.queue_id)

    def _shall_be_held(self, assigned: AssignedQueue) -> bool:
        return assigned.is_paused or self._cache.is_full(assigned)

    def _note(self, event: PullerEvent) -> None:
        if event.is_connected:
            _log.debug("the puller is connected")
        else:
            _log.warning("the puller's connection is lost, and is tried again: %s", event.reason)
            self._on_lost()

    def _run(self) -> None:
        while True:
            try:
                items = self._native.take(_WAIT, max_items=_MOST)
            except (ChannelClosedError, RmqError):
                return
            self.take_all(items)


def _key(queue: MessageQueue) -> tuple[str, int]:
    return queue.topic, queue.queue_id


def _batch(pulled: PulledQueue, fetched: Fetched) -> CachedBatch | None:
    assigned = pulled.assigned
    return CachedBatch(assigned.queue, assigned.process_queue, pulled.epoch, fetched) if len(fetched) else None
