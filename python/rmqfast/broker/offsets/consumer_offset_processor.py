"""Answers requests about consumer offsets: queries, updates, corrections, copies and resets.

Source: RocketMQ's `ConsumerManageProcessor`, `AdminBrokerProcessor`, `Broker2Client`, `ResetOffsetBodyForC`,
`MessageQueueForC`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rmqfast.broker.clients.client_call_processor import check_version
from rmqfast.broker.clients.client_channel import ClientChannel
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.offsets.consumer_offset_manager import ConsumerOffsetManager
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.protocol.heartbeat_data import checked_name
from rmqfast.store import LiveStore
from rmqfast.store.config import TopicConfig


class ConsumerOffsetProcessor:
    def __init__(
        self,
        offsets: ConsumerOffsetManager,
        consumers: ConsumerManager,
        find_topic: Callable[[str], TopicConfig | None],
    ) -> None:
        self._offsets = offsets
        self._consumers = consumers
        self._find_topic = find_topic

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.GET_ALL_CONSUMER_OFFSET: self.all,
            RequestCode.QUERY_CORRECTION_OFFSET: self.correction,
            RequestCode.CLONE_GROUP_OFFSET: self.clone,
        }

    def all(self, request: Request) -> Response:  # noqa: ARG002 - nothing is asked but by the code
        return Response(body=encode({"offsetTable": self._offsets.table()}))

    def correction(self, request: Request) -> Response:
        header = Header(request.ext_fields)
        left_out = (header.optional_text("filterGroups") or "").split(",")
        corrections = self._offsets.correction(header.text("topic"), header.text("compareGroup"), left_out)
        return Response(body=encode({"correctionOffsets": corrections}))

    def clone(self, request: Request) -> Response:
        """Answers request 314. Without a topic, copies the offsets of all topics. 4.9.4 means to, but fails."""
        header = Header(request.ext_fields)
        source, target = header.text("srcGroup"), header.text("destGroup")
        checked_name("group", target)
        topic = header.optional_text("topic")
        is_offline = header.flag("offline")
        for name in sorted(self._offsets.of_group(source)) if not (topic or "").strip() else [topic or ""]:
            if self._find_topic(name) is not None and (is_offline or self._consumers.may_consume(source, name)):
                self._offsets.clone(source, target, name)
        return Response()


#: Timestamp that means the end of a queue.
TO_THE_END = -1


class ResetOffsetProcessor:
    """Computes a group's offsets for a time and sends them to the group's consumers, which commit them."""

    def __init__(
        self,
        *,
        consumers: ConsumerManager,
        offsets: ConsumerOffsetManager,
        store: LiveStore,
        find_topic: Callable[[str], TopicConfig | None],
        broker_name: str,
        note_reset: Callable[[str, str, int, str, int, int], object],
    ) -> None:
        self._note_reset = note_reset
        self._consumers = consumers
        self._offsets = offsets
        self._store = store
        self._find_topic = find_topic
        self._broker_name = broker_name

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset}

    def reset(self, request: Request) -> Response:
        """Answers request 222. C++ clients get a list, since they cannot parse JSON with queues as keys."""
        header = Header(request.ext_fields)
        topic, group, when = header.text("topic"), header.text("group"), header.number("timestamp")
        table = self._table(topic, group, when, is_force=header.flag("isForce"))
        online = self._consumers.group(group)
        if online is None:
            raise ResponseError(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic} Timestamp: {when}",
            )
        fields = {"topic": topic, "group": group, "timestamp": str(when), "isForce": "false"}
        for queue, offset in table.items():
            before = self._offsets.offset(group, topic, queue.queue_id)
            self._note_reset(group, topic, queue.queue_id, request.channel.remote_address, before, offset)
        body = encode({"offsetTable": _as_list(table) if request.language == "CPP" else table})
        _notify(online.clients.values(), fields, body)
        return Response(body=encode({"offsetTable": table}))

    def _table(self, topic: str, group: str, when: int, *, is_force: bool) -> dict[MessageQueue, int]:
        config = self._find_topic(topic)
        if config is None:
            remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
        table = {}
        # One queue without an offset fails the whole reset, before any client is notified.
        for queue_id in range(config.write_queue_nums):
            committed = self._offsets.offset(group, topic, queue_id)
            if committed == -1:
                raise ResponseError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
            at_time = max(0, self._offset_for_time(topic, queue_id, when))
            queue = MessageQueue(topic, self._broker_name, queue_id)
            # Without force, a group only goes back, so that it does not skip messages.
            table[queue] = at_time if is_force else min(at_time, committed)
        return table

    def _offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        if when == TO_THE_END:
            return self._store.queue_bounds(topic, queue_id)[1]
        return self._store.offset_for_time(topic, queue_id, when)


def _notify(clients: Iterable[ClientChannel], fields: Mapping[str, str], body: bytes) -> None:
    """Sends the offsets to all clients. Refuses if the version of a client is too old."""
    targets = list(clients)
    for client in targets:
        check_version(client)
    for client in targets:
        client.channel.send_oneway(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)


def _as_list(table: Mapping[MessageQueue, int]) -> list[dict[str, str | int]]:
    return [
        {"brokerName": queue.broker_name, "offset": offset, "queueId": queue.queue_id, "topic": queue.topic}
        for queue, offset in table.items()
    ]
