"""Offsets of groups: resets, skips and copies them.

Source: `DefaultMQAdminExtImpl`, `CloneGroupOffsetCommand`, `ResetOffsetByTimeCommand`, `SkipAccumulationSubCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rmqfast.admin.admin_client import SLOW, AdminClient, BrokerAddress
from rmqfast.admin.consume_stats import stats_at
from rmqfast.admin.groups import Groups
from rmqfast.admin.members import online_at
from rmqfast.admin.topics import MAX_QUEUES, MAX_STATS_BYTES, topic_offsets_of_body
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
                offsets |= self._reset_online(broker, group, topic, timestamp, force=force)
            except ResponseError as error:
                if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                    raise
                offsets |= self._reset_offline(broker, group, topic, timestamp, force=force)
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
        self._set(address, group, queue, offset)

    def clone(self, source: str, target: str, topic: str) -> dict[MessageQueue, int]:
        """Copies a group's offsets for a topic to another group. Returns the copied offset of each queue.

        The target group should be offline. Brokers of RocketMQ 5.x must know the target group. `ClientError` 206 if the
        source group has no offsets.
        """
        addresses = dict(self._client.brokers_of(topic))
        # The progress of a group may name brokers that have left the topic's route.
        rows = [row for row in self._groups.progress(source, topic) if row.broker_name in addresses]
        for row in rows:
            address = addresses[row.broker_name]
            self._set(address, target, row.queue, row.consumer_offset)
        return {row.queue: row.consumer_offset for row in rows}

    def _reset_online(
        self, broker: BrokerAddress, group: str, topic: str, timestamp: int, *, force: bool
    ) -> Mapping[MessageQueue, int]:
        fields = {"topic": topic, "group": group, "timestamp": timestamp, "isForce": force}
        body = self._client.ask(broker.address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields, slow=True).body
        members = JsonObject.of_body(body, most=MAX_STATS_BYTES)
        return members.numbers_by_queue("offsetTable", most=MAX_QUEUES)

    def _reset_offline(
        self, broker: BrokerAddress, group: str, topic: str, timestamp: int, *, force: bool
    ) -> dict[MessageQueue, int]:
        committed = {row.queue: row.consumer_offset for row in stats_at(self._client, broker, group, topic)}
        offsets: dict[MessageQueue, int] = {}
        # A group without any offset here gets an offset in each queue, as with `resetOffsetByTimestampOld`.
        for queue in committed or self._queues_at(broker, topic):
            offset = self._offset_at(broker.address, queue, timestamp)
            # Without force, offsets only move back, as at brokers with online members.
            if force or offset <= committed.get(queue, 0):
                self._set(broker.address, group, queue, offset)
                offsets[queue] = offset
        return offsets

    def _set(self, address: str, group: str, queue: MessageQueue, offset: int) -> None:
        api, timeout = self._client.api, self._client.timeout
        api.update_consumer_offset(address, group, queue, offset, oneway=False, timeout=timeout)

    def _offset_at(self, address: str, queue: MessageQueue, timestamp: int) -> int:
        timeout = self._client.timeout * SLOW
        # SEARCH_OFFSET_BY_TIMESTAMP has no timestamp that means the end.
        if timestamp == END:
            return self._client.api.max_offset(address, queue, timeout=timeout)
        return self._client.api.search_offset(address, queue, timestamp, timeout=timeout)

    def _queues_at(self, broker: BrokerAddress, topic: str) -> list[MessageQueue]:
        body = self._client.ask(broker.address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic}, slow=True).body
        return sorted(item.queue for item in topic_offsets_of_body(body))


def _milliseconds(when: Time) -> int:
    if isinstance(when, datetime) and when.tzinfo is None and when == when:  # noqa: PLR0124 - NaT does not
        raise ArgumentError(f"when: expected a time with a zone, got {when.isoformat()}")
    timestamp = milliseconds(when, name="when")
    if timestamp < END:
        raise ArgumentError(f"when: expected milliseconds since 1970, or -1 for the end, got {when}")
    return timestamp
