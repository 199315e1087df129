"""Queues that somebody wrote down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rmqfast.message import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByConfig:
    """The same queues whoever else is there; nobody sees to it that each is some member's.

    Attributes:
        message_queues: What this member gets.

    Source: `AllocateMessageQueueByConfig`.
    """

    message_queues: tuple[MessageQueue, ...] = ()
    name: str = "CONFIG"

    def allocate(
        self,
        group: str,  # noqa: ARG002 - as all strategies
        client_id: str,  # noqa: ARG002
        queues: Sequence[MessageQueue],  # noqa: ARG002
        client_ids: Sequence[str],  # noqa: ARG002
    ) -> list[MessageQueue]:
        """See `AllocateMessageQueueStrategy`."""
        return list(self.message_queues)
