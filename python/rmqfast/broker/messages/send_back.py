"""Answers CONSUMER_SEND_MSG_BACK: stores a message again for its group, later or as a dead letter.

Source: RocketMQ's `SendMessageProcessor`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from rmqfast.broker.messages.appending import Append, status_of
from rmqfast.broker.messages.property_string import in_map_order
from rmqfast.broker.messages.queue_read import message_at
from rmqfast.broker.messages.retry_rule import (
    DLQ_QUEUES,
    FindGroup,
    MakeTopic,
    RetryTarget,
    group_or_error,
    retry_target,
    topic_or_error,
)
from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.broker.topics.topic_names import RETRY_PREFIX
from rmqfast.errors import FlushTimeoutError, ResponseError, RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.log_limit import limited
from rmqfast.store import LiveStore
from rmqfast.store.config import SubscriptionGroupConfig

__all__ = ["SendBackProcessor"]

_log = limited(logger_of(__name__))

#: What `TopicSysFlag` says of a topic that a unit consumes.
_UNIT_SUBSCRIPTION = 2


class SendBackProcessor:
    def __init__(
        self,
        live: LiveStore,
        append: Append,
        *,
        find_group: FindGroup,
        make_topic: MakeTopic,
        is_writable: Callable[[], bool],
        broker_ip: str,
        sent_back: Callable[[str, str], None] = lambda _group, _topic: None,
    ) -> None:
        self._live = live
        self._append = append
        self._find_group = find_group
        self._make_topic = make_topic
        self._is_writable = is_writable
        self._broker_ip = broker_ip
        self._sent_back = sent_back

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self.consumer_send_msg_back}

    def consumer_send_msg_back(self, request: Request) -> Response:
        """Stores a message again for its group, delayed or as a dead letter."""
        header = Header(request.ext_fields)
        physical_offset, level = header.number("offset"), header.number("delayLevel")
        group = group_or_error(header.text("group"), self._find_group)
        self._check_broker()
        # 4.9.4 drops the message and answers success
        if group.retry_queue_nums <= 0:
            return Response()
        queue_id = self._retry_queue(group, is_unit=header.flag("unitMode"))
        message = message_at(self._live, physical_offset)
        if message is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {physical_offset}")
        limit = header.number("maxReconsumeTimes") if header.optional_text("maxReconsumeTimes") else None
        target = retry_target(group, message.reconsume_times, level, own_limit=limit, version=request.version)
        if target.is_dead:
            topic_or_error(target.topic, DLQ_QUEUES, 0, self._make_topic)
            queue_id = 0
        self._store(message, target, queue_id)
        self._sent_back(group.group_name, message.properties.get("RETRY_TOPIC", message.topic))
        return Response()

    def _check_broker(self) -> None:
        if not self._is_writable():
            remark = f"the broker[{self._broker_ip}] sending message is forbidden"
            raise ResponseError(ResponseCode.NO_PERMISSION, remark)

    def _retry_queue(self, group: SubscriptionGroupConfig, *, is_unit: bool) -> int:
        name = RETRY_PREFIX + group.group_name
        queue_id = random.randrange(group.retry_queue_nums)  # noqa: S311 - any queue will do
        topic = topic_or_error(name, group.retry_queue_nums, _UNIT_SUBSCRIPTION if is_unit else 0, self._make_topic)
        if not topic.is_writable:
            raise ResponseError(ResponseCode.NO_PERMISSION, f"the topic[{name}] sending message is forbidden")
        return queue_id

    def _store(self, message: StoredMessage, target: RetryTarget, queue_id: int) -> None:
        properties = in_map_order(retried_properties(message, target.delay_level))
        try:
            self._append(
                message.message(target.topic, queue_id, properties),
                born_host=message.born_host,
                sys_flag=message.sys_flag,
                reconsume_times=message.reconsume_times + 1,
            )
        except FlushTimeoutError as error:
            # it is stored: nobody waits for the disk here, and the consumer would store it a second time
            _log.warning("a message that was sent back is not yet on the disk: %s", error)
        except RmqError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, status_of(error)) from error


def retried_properties(message: StoredMessage, delay_level: int) -> dict[str, str]:
    """Returns the properties of a retry: with its origin and delay."""
    properties = dict(message.properties)
    properties.setdefault("RETRY_TOPIC", message.topic)
    # as in RocketMQ nobody waits for the disk of a message that is stored again
    properties |= {"WAIT": "false", "DELAY": str(delay_level)}
    # the first delivery's id, however often the message comes back
    if not properties.get("ORIGIN_MESSAGE_ID", "").strip():
        properties["ORIGIN_MESSAGE_ID"] = message.offset_msg_id
    return properties
