"""What answers per message, in Rust, as the control plane sees it.

The control plane fills its tables; the data plane never asks back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig


class DataPlane(Protocol):
    """The tables by which messages are taken and given out, and the offsets of consumers; any thread may call it."""

    def put_topic(self, config: TopicConfig) -> None:
        """Makes a topic known, or takes the place of the one of its name."""

    def remove_topic(self, name: str) -> None:
        """Forgets a topic; one that is not there is no error."""

    def put_group(self, config: SubscriptionGroupConfig) -> None:
        """Makes a consumer group's configuration known, or takes the place of the one of its name."""

    def remove_group(self, name: str) -> None:
        """Forgets a consumer group's configuration; one that is not there is no error."""

    def put_subscription(  # noqa: PLR0917 - the fields of a subscription, as a heartbeat has them
        self, group: str, topic: str, expression_type: str, sub_string: str, sub_version: int, codes: list[int]
    ) -> None:
        """Says what an online group wants of a topic; `codes` are the hashes of its tags, none for all messages."""

    def remove_subscription(self, group: str, topic: str) -> None:
        """Forgets what a group wants of a topic; one that is not there is no error."""

    def put_consumer_group(self, group: str, message_model: str) -> None:
        """Says that a group has a consumer online, and its model: CLUSTERING or BROADCASTING."""

    def remove_consumer_group(self, group: str) -> None:
        """Says that a group has no consumer online; its subscriptions go with it."""

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Notes the next queue offset that a group consumes, a smaller one, too."""

    def offset(self, group: str, topic: str, queue_id: int) -> int:
        """The next queue offset that a group consumes; -1 where it has committed none."""

    def offsets(self, *, group: str | None = None, topic: str | None = None) -> dict[str, dict[int, int]]:
        """A copy of the offsets of a group, of a topic, or of all: by `topic@group`, then by queue."""

    def take_changed_offsets(self, limit: int) -> list[tuple[str, str | None]]:
        """At most so many of the offsets that changed since they were taken: `topic@group`, its queues as JSON.

        None stands in place of JSON for those that were removed.
        """

    def remove_offsets(self, group: str, topic: str | None = None) -> None:
        """Forgets the offsets of a group, in all topics unless one is given."""

    def set_permission(self, perm: int) -> None:
        """Sets what the broker as a whole allows: 4 to read, 2 to write, added up."""

    def counters(self) -> Sequence[tuple[str, str, int, int]]:
        """Name of a statistic, its key, times and amount since the start; they only grow."""
