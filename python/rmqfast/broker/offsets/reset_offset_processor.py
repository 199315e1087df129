"""Answers INVOKE_BROKER_TO_RESET_OFFSET: consumers that are online go on at the offsets of a time.

Source: RocketMQ's `Broker2Client`, `ResetOffsetBodyForC`, `MessageQueueForC`, `AdminBrokerProcessor`.
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
from rmqfast.store import LiveStore
from rmqfast.store.config import TopicConfig

#: The time that stands for the end of a queue.
TO_THE_END = -1


class ResetOffsetProcessor:
    """Computes a group's offsets for a time and sends them to its consumers, which commit them."""

    def __init__(
        self,
        *,
        consumers: ConsumerManager,
        offsets: ConsumerOffsetManager,
        store: LiveStore,
        find_topic: Callable[[str], TopicConfig | None],
        broker_name: str,
    ) -> None:
        self._consumers = consumers
        self._offsets = offsets
        self._store = store
        self._find_topic = find_topic
        self._broker_name = broker_name

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset}

    def reset(self, request: Request) -> Response:
        """222: C++ clients get a list, as they cannot parse queues as keys."""
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
        body = encode({"offsetTable": _as_list(table) if request.language == "CPP" else table})
        _notify(online.clients.values(), fields, body)
        return Response(body=encode({"offsetTable": table}))

    def _table(self, topic: str, group: str, when: int, *, is_force: bool) -> dict[MessageQueue, int]:
        config = self._find_topic(topic)
        if config is None:
            remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
        table = {}
        for queue_id in range(config.write_queue_nums):
            committed = self._offsets.offset(group, topic, queue_id)
            if committed == -1:
                raise ResponseError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
            at_time = max(0, self._offset_for_time(topic, queue_id, when))
            queue = MessageQueue(topic, self._broker_name, queue_id)
            # without force a group only goes back: messages that it has not consumed are not passed over
            table[queue] = at_time if is_force else min(at_time, committed)
        return table

    def _offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        if when == TO_THE_END:
            return self._store.queue_bounds(topic, queue_id)[1]
        return self._store.offset_for_time(topic, queue_id, when)


def _notify(clients: Iterable[ClientChannel], fields: Mapping[str, str], body: bytes) -> None:
    """Sends all clients their offsets; one that is too old refuses for all."""
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
