"""What those ask who answer questions about consumers: who is online, and how far each group is."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Protocol


class Subscription(Protocol):
    """What a group wants of a topic."""

    def to_json(self) -> dict[str, Any]:
        """As RocketMQ sends it."""


class OnlineConsumers(Protocol):
    """The consumers that are online."""

    def subscription(self, name: str, topic: str) -> Subscription | None:
        """What a group wants of a topic; None where it wants nothing of it, or is not online."""

    def subscription_count(self, name: str) -> int:
        """How many topics a group wants; 0 where it is not online."""

    def groups_of_topic(self, topic: str) -> AbstractSet[str]:
        """The groups that want a topic."""


class CommittedOffsets(Protocol):
    """The offsets that groups have committed."""

    def committed(self, group: str, topic: str, queue_id: int) -> int:
        """The next offset that a group consumes; -1 where it has committed none."""

    def topics_of(self, group: str) -> AbstractSet[str]:
        """The topics of which a group has offsets."""

    def groups_of(self, topic: str) -> AbstractSet[str]:
        """The groups that have offsets of a topic."""

    def remove(self, group: str, topic: str | None = None) -> None:
        """Forgets the offsets of a group, in all topics unless one is given."""
