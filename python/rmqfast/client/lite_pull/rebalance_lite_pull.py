"""Which queues a lite pull consumer has.

Source: `RebalanceLitePullImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from rmqfast.client.consumer import OffsetStore, PullRequest, ReadOffsetType, Rebalance, compute_pull_from_where
from rmqfast.client.consumer.queue_admin import QueueAdmin
from rmqfast.client.consumer.rebalance import OwnedQueue
from rmqfast.client.instance import ClientInstance
from rmqfast.client.lite_pull.options import LitePullOptions, MessageQueueListener
from rmqfast.client.pulling.pulled_queues import PulledQueue, PulledQueues
from rmqfast.message import MessageQueue


class RebalanceLitePull(Rebalance[OwnedQueue]):
    """The queues of a lite pull consumer."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        options: LitePullOptions,
        offset_store: OffsetStore,
        *,
        queues: PulledQueues[None],
        on_changed: MessageQueueListener,
    ) -> None:
        super().__init__(instance, group, options.message_model, options.strategy, offset_store)
        self._options, self._queues, self._on_changed = options, queues, on_changed
        admin = QueueAdmin(instance)
        self._max_offset: Callable[[MessageQueue], int] = admin.max_offset
        self._search_offset: Callable[[MessageQueue, int], int] = admin.search_offset

    @property
    def consume_type(self) -> Literal["CONSUME_ACTIVELY"]:
        """The application pulls."""
        return "CONSUME_ACTIVELY"

    def new_process_queue(self, _queue: MessageQueue) -> OwnedQueue:
        """A mark that this member has the queue."""
        return OwnedQueue()

    def remove_unnecessary(self, queue: MessageQueue, _process_queue: OwnedQueue) -> bool:
        """Stores the offset of a queue that is given up.

        Source: `RebalanceLitePullImpl.removeUnnecessaryMessageQueue`.
        """
        self._queues.stop([queue])  # nobody gets its messages once its offset is stored
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        return True

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where to begin.

        Source: `RebalanceLitePullImpl.computePullFromWhereWithException`.
        """
        return compute_pull_from_where(
            self._options.consume_from_where,
            queue,
            self.offset_store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE),
            max_offset=self._max_offset,
            search_offset=self._search_offset,
            consume_timestamp=self._options.consume_timestamp,
        )

    def dispatch(self, requests: Sequence[PullRequest[OwnedQueue]]) -> None:
        """Has the queues pulled that this member got."""
        for request in requests:
            self._queues.start(PulledQueue(request.queue, None, request.next_offset))

    def message_queue_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        """Tells the consumer, which has a listener to tell."""
        self._on_changed(topic, all_queues, mine)
