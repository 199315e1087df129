"""Distributes the queues of a group's topics among its consumers. Each consumer computes the same result.

Source: RocketMQ's `RebalanceImpl`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rmqfast.client.consumer.offset_store import OffsetStore
from rmqfast.client.consumer.queue_locks import ProcessQueueLike, QueueLocks
from rmqfast.client.consumer.strategies import AllocateMessageQueueStrategy
from rmqfast.client.instance import ClientInstance, MessageModel
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

_log = logger_of(__name__)


class OwnedQueue:
    """A queue assigned to a pull consumer or a lite pull consumer, which keep no process queue."""

    def __init__(self) -> None:
        self.is_dropped = self.is_locked = False
        self.last_lock: float = monotonic()

    def is_pull_expired(self) -> bool:
        """Returns False, since the application decides when to pull."""
        return False


Q = TypeVar("Q", bound=ProcessQueueLike)


@dataclass(slots=True)
class PullRequest(Generic[Q]):
    """The first pull of a queue that was just assigned."""

    queue: MessageQueue
    process_queue: Q
    next_offset: int


class Rebalance(ABC, Generic[Q]):
    """The queues of a consumer. Takes and releases queues when the group changes."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        message_model: MessageModel,
        strategy: AllocateMessageQueueStrategy,
        offset_store: OffsetStore,
    ) -> None:
        self.instance: Final = instance
        self.group: Final = group
        self.message_model = message_model
        self.strategy: Final = strategy
        self.offset_store: Final = offset_store
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.subscribe_info: dict[str, frozenset[MessageQueue]] = {}
        self.process_queues: dict[MessageQueue, Q] = {}
        self._lock, self._is_ended = new_lock(), False
        self.locks: Final = QueueLocks(instance, group, self.process_queues)

    @abstractmethod
    def new_process_queue(self, queue: MessageQueue) -> Q:
        """Creates the process queue for an assigned queue."""

    @abstractmethod
    def remove_unnecessary(self, queue: MessageQueue, process_queue: Q) -> bool:
        """Stores the offset of a queue that will be released. Returns False if the queue must be kept for now."""

    @abstractmethod
    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Returns the start offset of a queue. A negative number if it is not known yet."""

    @abstractmethod
    def dispatch(self, requests: Sequence[PullRequest[Q]]) -> None:
        """Starts to pull queues that were just assigned."""

    @abstractmethod
    def message_queue_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        """Called when this consumer has gained or lost queues."""

    def do_rebalance(self, *, is_ordered: bool = False) -> None:
        """Rebalances all topics. If a topic fails, the error is logged and the topic keeps its queues.

        Args:
            is_ordered: Whether a queue must be locked at its broker first.
        """
        for topic in self.subscriptions.copy():
            try:
                self._rebalance_topic(topic, is_ordered=is_ordered)
            except Exception:  # noqa: BLE001 - the other topics are still rebalanced
                if not topic.startswith(RETRY_PREFIX):
                    _log.exception("group %s: topic %s could not be rebalanced", self.group, topic)
        self._truncate_queues_of_other_topics()

    def update_process_queue_table(self, topic: str, mine: Iterable[MessageQueue], *, is_ordered: bool = False) -> bool:
        """Releases queues that are not in `mine`, and takes the queues in `mine`. Returns whether anything changed.

        A queue that cannot be locked, or has no known start offset, waits for the next rebalance.
        """
        share = frozenset(mine)
        changed = self._give_up(topic, share)
        requests = [
            request
            for queue in sorted(share)
            if queue not in self.process_queues
            if (request := self._take(queue, is_ordered=is_ordered)) is not None
        ]
        self.dispatch(requests)
        return changed or bool(requests)

    def drop_all(self) -> None:
        """Releases all queues without storing offsets. Called at shutdown."""
        with self._lock:
            self._is_ended = True
            dropped = list(self.process_queues.values())
            self.process_queues.clear()
        for process_queue in dropped:
            process_queue.is_dropped = True

    def remove_process_queue(self, queue: MessageQueue) -> None:
        """Releases one queue, so that the next rebalance assigns it again."""
        process_queue = self.process_queues.pop(queue, None)
        if process_queue is not None:
            process_queue.is_dropped = True
            self.remove_unnecessary(queue, process_queue)

    def _rebalance_topic(self, topic: str, *, is_ordered: bool) -> None:
        queues = self.subscribe_info.get(topic)
        mine = queues if self.message_model == "BROADCASTING" else self._share(topic, queues)
        if queues is None and not topic.startswith(RETRY_PREFIX):
            _log.warning("group %s: topic %s has no route", self.group, topic)
        if queues is None or mine is None:
            return
        if self.update_process_queue_table(topic, mine, is_ordered=is_ordered):
            self.message_queue_changed(topic, queues, mine)

    def _share(self, topic: str, queues: frozenset[MessageQueue] | None) -> frozenset[MessageQueue] | None:
        client_ids = self.instance.find_consumer_ids(topic, self.group)
        if queues is None:
            # find_consumer_ids already updated the route; the caller logs that it is missing
            return None
        if client_ids is None:
            _log.warning("group %s: topic %s: nobody can tell who is in the group", self.group, topic)
            return None
        # all members must see the same order, including Java's
        strategy, members = self.strategy, sorted(client_ids, key=java_order)
        try:
            share = strategy.allocate(self.group, self.instance.client_id, sorted(queues), members)
        except (Exception, SystemExit):  # noqa: BLE001 - an application's strategy may raise anything
            _log.exception("group %s: topic %s: the strategy %s fails", self.group, topic, strategy.name)
            return None
        # CONFIG returns its list for every topic
        return frozenset(mine for mine in share or () if mine.topic == topic)

    def _give_up(self, topic: str, share: frozenset[MessageQueue]) -> bool:
        changed = False
        for queue, process_queue in self.process_queues.copy().items():
            if queue.topic != topic:
                continue
            # a queue whose pulls have stopped is released and taken again
            stuck = queue in share and process_queue.is_pull_expired()
            if queue in share and not stuck:
                continue
            process_queue.is_dropped = True
            if self.remove_unnecessary(queue, process_queue):
                self.process_queues.pop(queue, None)
                changed = True
                _log.info("group %s: gave up %s%s", self.group, queue, ", which was stuck" if stuck else "")
        return changed

    def _take(self, queue: MessageQueue, *, is_ordered: bool) -> PullRequest[Q] | None:
        # the next rebalance tries again
        if is_ordered and not self.locks.lock(queue):
            _log.info("group %s: %s is locked by another member", self.group, queue)
            return None
        # an offset of an earlier assignment: the member in between has stored a newer one
        self.offset_store.remove_offset(queue)
        process_queue = self.new_process_queue(queue)
        try:
            offset = self.compute_pull_from_where(queue)
        except Exception as error:  # noqa: BLE001 - earlier queues must still be dispatched
            # as in Java, the lock stays until it expires
            _log.warning("group %s: nobody can tell where to begin in %s: %r", self.group, queue, error)
            return None
        if offset < 0:
            _log.warning("group %s: nobody can tell where to begin in %s", self.group, queue)
            return None
        # a shutdown meanwhile has released all queues, including this one
        with self._lock:
            # another thread may have taken the queue
            if self._is_ended or self.process_queues.setdefault(queue, process_queue) is not process_queue:
                return None
        _log.info("group %s: took %s, from %d on", self.group, queue, offset)
        return PullRequest(queue, process_queue, offset)

    def _truncate_queues_of_other_topics(self) -> None:
        for queue in self.process_queues.copy():
            if queue.topic not in self.subscriptions:
                # as in Java, offsets are not stored and locks not released
                process_queue = self.process_queues.pop(queue, None)
                if process_queue is not None:
                    process_queue.is_dropped = True
                    _log.info("group %s: gave up %s, nobody subscribes to it", self.group, queue)


def java_order(text: str) -> bytes:
    """Returns a sort key for strings that gives Java's order, by UTF-16 code units."""
    # big-endian bytes compare like UTF-16 units
    return text.encode("utf-16-be", "surrogatepass")
