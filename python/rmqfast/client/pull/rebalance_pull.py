"""Which queues a consumer has that pulls by hand: it is told, and does as it likes.

Source: `RebalancePullImpl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rmqfast.client.consumer import PullRequest, Rebalance
from rmqfast.client.consumer.offset_store import OffsetStore
from rmqfast.client.consumer.rebalance import OwnedQueue
from rmqfast.client.instance import ClientInstance
from rmqfast.client.pull.options import MessageQueueListener, PullOptions
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue

_log = logger_of(__name__)


class RebalancePull(Rebalance[OwnedQueue]):
    """The queues of a consumer that pulls by hand."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        options: PullOptions,
        offset_store: OffsetStore,
        listener: MessageQueueListener,
    ) -> None:
        super().__init__(instance, group, options.message_model, options.strategy, offset_store)
        self._listener = listener

    @property
    def consume_type(self) -> Literal["CONSUME_ACTIVELY"]:
        """The application pulls."""
        return "CONSUME_ACTIVELY"

    def new_process_queue(self, _queue: MessageQueue) -> OwnedQueue:
        """A mark that this member has the queue."""
        return OwnedQueue()

    def remove_unnecessary(self, queue: MessageQueue, _process_queue: OwnedQueue) -> bool:
        """Stores the offset of a queue that is given up.

        Source: `RebalancePullImpl.removeUnnecessaryMessageQueue`.
        """
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        return True

    def compute_pull_from_where(self, _queue: MessageQueue) -> int:
        """Whatever it is: the application knows where it pulls."""
        return 0

    def dispatch(self, requests: Sequence[PullRequest[OwnedQueue]]) -> None:
        """The application pulls."""

    def message_queue_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        """Tells the application's listener; what that raises is logged.

        Source: `RebalancePullImpl.messageQueueChanged`.
        """
        try:
            self._listener(topic, all_queues, mine)
        except Exception:  # noqa: BLE001 - the application's, on a thread that others need
            _log.exception("group %s: messageQueueChanged exception", self.group)
