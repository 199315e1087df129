"""Offsets of groups: resets, skips and copies them.

Source: `DefaultMQAdminExtImpl`, `CloneGroupOffsetCommand`, `ResetOffsetByTimeCommand`, `SkipAccumulationSubCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from rmqfast.admin.admin_client import SLOW, AdminClient, BrokerAddress
from rmqfast.admin.consume_stats import QueueProgress, stats_at
from rmqfast.admin.groups import Groups
from rmqfast.admin.members import online_at
from rmqfast.admin.questions import is_refusal
from rmqfast.admin.topics import MAX_QUEUES, MAX_STATS_BYTES, status_question, topic_offsets_of_body
from rmqfast.arguments import Time, integer
from rmqfast.errors import ArgumentError, ClientError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.store import milliseconds

#: Timestamp that means the end of a queue.
END = -1


class Offsets:
    """`admin.offsets`: resets and copies offsets of groups."""

    def __init__(self, client: AdminClient, groups: Groups) -> None:
        self._client, self._groups = client, groups

    def reset_by_time(self, group: str, topic: str, when: Time, *, force: bool = True) -> dict[MessageQueue, int]:
        """Resets a group's offsets for a topic to a time, on all brokers. Returns the new offset of each queue.

        The broker notifies online members, which switch within ten seconds. Without online members, the stored offsets
        change.

        Args:
            group: The group; `ResponseError` 1 if it has no offset for a queue.
            topic: The topic; `ResponseError` 17 if it does not exist.
            when: A time with a zone, or milliseconds since 1970; -1 for the end of the queues.
            force: Allows moving forward, too. Without `force`, the result omits queues that would need it.
        """
        timestamp = _milliseconds(when)
        offsets: dict[MessageQueue, int] = {}
        for broker in self._client.brokers_of(topic):
            try:
                offsets |= reset_online(self._client, broker, group, topic, timestamp, force=force)
            except ResponseError as error:
                if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                    raise
                rows = reset_offline(self._client, broker, group, topic, timestamp, force=force)
                offsets |= {row.queue: row.rollback_offset for row in rows if row.is_reset}
        return offsets

    def reset_to_begin(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """Resets a group to the first message that is still stored; see `reset_by_time`."""
        return self.reset_by_time(group, topic, 0)

    def reset_to_end(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """Skips the backlog of a group; see `reset_by_time`."""
        return self.reset_by_time(group, topic, END)

    def reset(self, group: str, queue: MessageQueue, offset: int, *, force: bool = False) -> None:
        """Sets the offset of a group in one queue.

        With `force`, sets it even while members are online, which overwrite it within seconds.

        Raises:
            ClientError: Members are online.
        """
        offset = integer("offset", offset, 0)
        # Members keep offsets in memory and commit them every five seconds, which would undo the change.
        address = self._client.broker_of(queue.topic, queue.broker_name)
        if not force and (members := online_at(self._client, address, group).client_ids):
            raise ClientError(
                f"the group {group} has members online, which would overwrite the offset: {', '.join(members)}",
                next_step="stop them first, or use offsets.reset_by_time, of which members are told",
            )
        _set(self._client, address, group, queue, offset)

    def preview(self, group: str, topic: str, when: Time) -> list[OffsetChange]:
        """Returns what `reset_by_time` would change, queue by queue, and changes nothing.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     admin.create_topic("orders", queues=1)
            ...     with rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
            ...         for _ in range(3):
            ...             sent = producer.send(rmqfast.Message("orders", b"paid"))
            ...     admin.offsets.reset("billing", sent.queue, 1, force=True)
            ...     (change,) = admin.offsets.preview("billing", "orders", -1)
            >>> change.before, change.after, change.skipped
            (1, 3, 2)
        """
        timestamp = _milliseconds(when)
        changes = []
        for broker in self._client.brokers_of(topic):
            before = self._offsets_at(broker, group, topic)
            for queue, end, _ in _queues_at(self._client, broker, topic):
                after = _offset_at(self._client, broker.address, queue, timestamp)
                changes.append(OffsetChange(queue, before.get(queue), after, end))
        return changes

    def preview_clone(self, source: str, target: str, topic: str) -> list[OffsetChange]:
        """Returns what `clone` would change, queue by queue, and changes nothing."""
        before = {
            queue: offset
            for broker in self._client.brokers_of(topic)
            for queue, offset in self._offsets_at(broker, target, topic).items()
        }
        rows = self._rows_to_clone(source, topic)
        return [OffsetChange(row.queue, before.get(row.queue), row.consumer_offset, row.broker_offset) for row in rows]

    def _offsets_at(self, broker: BrokerAddress, group: str, topic: str) -> dict[MessageQueue, int]:
        try:
            rows = stats_at(self._client, broker, group, topic)
        except ResponseError as error:
            if is_refusal(error):
                raise
            return {}  # brokers that have no offsets of the group answer with an error
        return {row.queue: row.consumer_offset for row in rows if row.topic == topic and row.consumer_offset >= 0}

    def clone(self, source: str, target: str, topic: str) -> dict[MessageQueue, int]:
        """Copies a group's offsets for a topic to another group. Returns the copied offset of each queue.

        The target group should be offline. Brokers of RocketMQ 5.x must know the target group. `ClientError` 206 if the
        source group has no offsets.
        """
        addresses, rows = dict(self._client.brokers_of(topic)), self._rows_to_clone(source, topic)
        for row in rows:
            _set(self._client, addresses[row.broker_name], target, row.queue, row.consumer_offset)
        return {row.queue: row.consumer_offset for row in rows}

    def _rows_to_clone(self, source: str, topic: str) -> list[QueueProgress]:
        names = {broker.broker_name for broker in self._client.brokers_of(topic)}
        # The progress of a group may name brokers that have left the topic's route.
        return [row for row in self._groups.progress(source, topic) if row.broker_name in names]


class OffsetChange(NamedTuple):
    """A change of a group's offset in one queue.

    Attributes:
        queue: The queue.
        before: Offset before the change; `None` without one.
        after: Offset after it.
        end: End of the queue.
    """

    queue: MessageQueue
    before: int | None
    after: int
    end: int

    @property
    def again(self) -> int:
        """Number of messages that the group gets again."""
        return 0 if self.before is None else max(0, self.before - self.after)

    @property
    def behind(self) -> int:
        """Backlog of the group before the change."""
        return 0 if self.before is None else max(0, self.end - self.before)

    @property
    def skipped(self) -> int:
        """Number of messages that the group does not get any more."""
        return 0 if self.before is None else max(0, self.after - self.before)


class Rollback(NamedTuple):
    """The reset of an offline group in one queue.

    Attributes:
        broker_offset: End of the queue.
        consumer_offset: Offset before the reset.
        timestamp_offset: Offset of the time.
        is_reset: Whether the offset of the time is the group's now. Without force, offsets only move back.
    """

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    timestamp_offset: int
    is_reset: bool

    @property
    def rollback_offset(self) -> int:
        """Offset after the reset."""
        return self.timestamp_offset if self.is_reset else self.consumer_offset


def reset_online(
    client: AdminClient, broker: BrokerAddress, group: str, topic: str, timestamp: int, *, force: bool
) -> Mapping[MessageQueue, int]:
    """Lets a broker reset a group, and tell its members. Raises `ResponseError` 206 if none is online."""
    fields = {"topic": topic, "group": group, "timestamp": timestamp, "isForce": force}
    body = client.ask(broker.address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields, slow=True).body
    members = JsonObject.of_body(body, most=MAX_STATS_BYTES)
    return members.numbers_by_queue("offsetTable", most=MAX_QUEUES)


def reset_offline(
    client: AdminClient, broker: BrokerAddress, group: str, topic: str, timestamp: int, *, force: bool
) -> list[Rollback]:
    """Resets a group without members at one broker, queue by queue."""
    rows = [row for row in stats_at(client, broker, group, topic) if row.topic == topic]
    known = [(row.queue, row.broker_offset, row.consumer_offset) for row in rows]
    # A group without any offset here gets an offset in each queue.
    return [
        _reset_queue(client, broker.address, group, place, timestamp, force=force)
        for place in known or _queues_at(client, broker, topic)
    ]


def _reset_queue(
    client: AdminClient,
    address: str,
    group: str,
    place: tuple[MessageQueue, int, int],
    timestamp: int,
    *,
    force: bool,
) -> Rollback:
    queue, end, committed = place
    offset = _offset_at(client, address, queue, timestamp)
    # Without force, offsets only move back, as at brokers with online members.
    is_reset = force or offset <= committed
    if is_reset:
        _set(client, address, group, queue, offset)
    return Rollback(queue, end, committed, offset, is_reset)


def _set(client: AdminClient, address: str, group: str, queue: MessageQueue, offset: int) -> None:
    client.api.update_consumer_offset(address, group, queue, offset, oneway=False, timeout=client.timeout)


def _offset_at(client: AdminClient, address: str, queue: MessageQueue, timestamp: int) -> int:
    timeout = client.timeout * SLOW
    # SEARCH_OFFSET_BY_TIMESTAMP has no timestamp that means the end.
    if timestamp == END:
        return client.api.max_offset(address, queue, timeout=timeout)
    return client.api.search_offset(address, queue, timestamp, timeout=timeout)


def _queues_at(client: AdminClient, broker: BrokerAddress, topic: str) -> list[tuple[MessageQueue, int, int]]:
    """Returns the queues of a topic with their ends and beginnings."""
    body = client.ask(*status_question(broker.address, topic), slow=True).body
    return sorted((item.queue, item.max_offset, item.min_offset) for item in topic_offsets_of_body(body))


def _milliseconds(when: Time) -> int:
    if isinstance(when, datetime) and when.tzinfo is None and when == when:  # noqa: PLR0124 - NaT does not
        raise ArgumentError(f"when: expected a time with a zone, got {when.isoformat()}")
    timestamp = milliseconds(when, name="when")
    if timestamp < END:
        raise ArgumentError(f"when: expected milliseconds since 1970, or -1 for the end, got {when}")
    return timestamp
