"""What all strategies have in common.

Source: `AllocateMessageQueueStrategy`, `AbstractAllocateMessageQueueStrategy.check`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue

_log = logging.getLogger(__name__)


class AllocateMessageQueueStrategy(Protocol):
    """Which queues are a member's; all members of a group must have the same."""

    @property
    def name(self) -> str:
        """As RocketMQ calls it."""

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one member.

        Args:
            group: The group.
            client_id: The member.
            queues: All queues, in their order.
            client_ids: All members, in the order of their names.

        Raises:
            ArgumentError: No queues, no members, or a member without a name.
        """


def queue_text(queue: MessageQueue) -> str:
    """A queue as Java writes it: what is hashed, and what errors say.

    Source: `MessageQueue.toString`.
    """
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"


def index_of(group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> int | None:
    """Which one of the members it is; `None` where it is none, which is logged.

    Raises:
        ArgumentError: As `AllocateMessageQueueStrategy.allocate`.
    """
    if not client_id:
        raise ArgumentError("currentCID is empty")
    if not queues:
        raise ArgumentError("mqAll is null or mqAll empty")
    if not client_ids:
        raise ArgumentError("cidAll is null or cidAll empty")
    if client_id not in client_ids:
        _log.info("group %s: %s is not in the group yet: %s", group, client_id, client_ids)
        return None
    return client_ids.index(client_id)
