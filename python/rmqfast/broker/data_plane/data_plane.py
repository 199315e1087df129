"""Fills the tables of the data plane, which answers per message in Rust, for the control plane.

The data plane never asks back: a request that it cannot answer comes to the mailbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from rmqfast._native import Appender, Mailbox
from rmqfast._native import DataPlane as Native
from rmqfast.broker.data_plane.data_plane_options import DataPlaneOptions
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig

#: What RocketMQ's statistics count of what the data plane counts: messages and bytes, messages, or calls.
_WITH_SIZE = frozenset({"TOPIC_PUT", "STORE_PUT", "GROUP_GET", "QUEUE_PUT", "QUEUE_GET"})
_WITHOUT_SIZE = frozenset({"BROKER_PUT", "BROKER_GET", "SNDBCK_PUT"})
_CALLS = {"BROKER_PUT_FAILED": "STORE_PUT_FAILED", "BROKER_GET_MISS": "STORE_GET_MISS"}


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


class NativeDataPlane:
    """The data plane in Rust, as a `DataPlane`.

    Attributes:
        native: What a listener hands its requests to.
    """

    def __init__(self, appender: Appender, mailbox: Mailbox, options: DataPlaneOptions) -> None:
        native = Native.open(appender, mailbox, options)
        self.native: Final = native
        # Rust takes these calls as they are.
        self.remove_topic: Final = native.remove_topic
        self.remove_group: Final = native.remove_group
        self.remove_subscription: Final = native.remove_subscription
        self.remove_consumer_group: Final = native.remove_consumer_group
        self.commit_offset: Final = native.commit_offset
        self.take_changed_offsets: Final = native.take_changed_offsets
        self.set_permission: Final = native.set_permission
        self.close: Final = native.close

    def put_topic(self, config: TopicConfig) -> None:
        """See `DataPlane`."""
        queues = (config.read_queue_nums, config.write_queue_nums)
        is_multi_tag = config.topic_filter_type == "MULTI_TAG"
        self.native.put_topic(config.topic_name, queues, config.perm, is_multi_tag, config.order)

    def put_group(self, config: SubscriptionGroupConfig) -> None:
        """See `DataPlane`."""
        enabled = (config.consume_enable, config.consume_broadcast_enable)
        broker_ids = (config.broker_id, config.which_broker_when_consume_slowly)
        self.native.put_group(config.group_name, enabled, broker_ids)

    def put_subscription(  # noqa: PLR0917 - the fields of a subscription, as a heartbeat has them
        self, group: str, topic: str, expression_type: str, sub_string: str, sub_version: int, codes: list[int]
    ) -> None:
        """See `DataPlane`."""
        self.native.put_subscription(group, topic, (expression_type, sub_string), sub_version, codes)

    def put_consumer_group(self, group: str, message_model: str) -> None:
        """See `DataPlane`."""
        self.native.put_consumer_group(group, message_model == "BROADCASTING")

    def offset(self, group: str, topic: str, queue_id: int) -> int:
        """See `DataPlane`."""
        offset = self.native.offset(group, topic, queue_id)
        return -1 if offset is None else offset

    def offsets(self, *, group: str | None = None, topic: str | None = None) -> dict[str, dict[int, int]]:
        """See `DataPlane`."""
        return self.native.offsets(group, topic)

    def remove_offsets(self, group: str, topic: str | None = None) -> None:
        """See `DataPlane`."""
        self.native.remove_offsets(group, topic)

    def counters(self) -> list[tuple[str, str, int, int]]:
        """See `DataPlane`."""
        put_max, get_max, ranges = self.native.times()
        counters = [("STORE_PUT_TIME_MAX", "", 1, put_max), ("STORE_GET_TIME_MAX", "", 1, get_max)]
        counters += [("STORE_PUT_TIME", name, count, count) for name, count in ranges]
        for name, key, calls, messages, size in self.native.counters():
            if name in _WITH_SIZE:
                counters += [(f"{name}_NUMS", key, calls, messages), (f"{name}_SIZE", key, calls, size)]
            elif name in _WITHOUT_SIZE:
                counters.append((f"{name}_NUMS", key, calls, messages))
            elif name in _CALLS:
                counters.append((_CALLS[name], key, calls, calls))
        return counters
