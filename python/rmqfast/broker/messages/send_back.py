"""Answers CONSUMER_SEND_MSG_BACK: stores a message again for its group, to be delivered later or as a dead letter.

Source: RocketMQ's `SendMessageProcessor`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from rmqfast.broker.messages.appending import Append, status_of
from rmqfast.broker.messages.stored_message import StoredMessage, in_map_order, message_at
from rmqfast.broker.topics.topic_manager import DLQ_PREFIX, FAQ, RETRY_PREFIX
from rmqfast.errors import FlushTimeoutError, ResponseError, RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.rate_limit import limited
from rmqfast.store import LiveStore
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig

_log = limited(logger_of(__name__))
DLQ_QUEUES = 1
#: Ordinal of 3.4.9, from which on a client's own limit of attempts counts.
FIRST_VERSION_WITH_LIMIT = 121

#: Returns a group's configuration by name, creating the group if the broker may; None otherwise.
FindGroup = Callable[[str], SubscriptionGroupConfig | None]
#: Returns a topic by name, creating it with these queues, permission and system flag; None if it cannot be created.
MakeTopic = Callable[[str, int, int, int], TopicConfig | None]


@dataclass(frozen=True, slots=True)
class RetryTarget:
    """The topic to which a retry goes.

    `is_dead` marks the group's dead-letter topic, whose only queue is 0. `delay_level` 0 means no delay.
    """

    topic: str
    is_dead: bool
    delay_level: int


def retry_target(
    group: SubscriptionGroupConfig, reconsume_times: int, delay_level: int, *, own_limit: int | None, version: int
) -> RetryTarget:
    """Returns the target of a message that a consumer sends back: the group's retry topic or dead-letter topic.

    `delay_level` 0 lets the broker choose the level, a negative one makes a dead letter.
    """
    if reconsume_times >= limit_of(group, own_limit, version) or delay_level < 0:
        return RetryTarget(DLQ_PREFIX + group.group_name, is_dead=True, delay_level=0)
    # Level 3 is 10 seconds: the first retry comes after 10 seconds, the sixteenth after two hours.
    return RetryTarget(RETRY_PREFIX + group.group_name, is_dead=False, delay_level=delay_level or 3 + reconsume_times)


def target_of_send(
    topic: str,
    queue_id: int,
    find_group: FindGroup,
    make_topic: MakeTopic,
    *,
    reconsume_times: int,
    own_limit: int | None,
    version: int,
) -> tuple[str, int]:
    """Returns topic and queue of a send: its own, or the dead-letter queue for a retry that has failed too often.

    Only messages to a `%RETRY%` topic are redirected. They keep their delay even there: RocketMQ means to remove it but
    does not.

    Raises:
        ResponseError: The group (26) or the dead-letter topic (1) does not exist.
    """
    if not topic.startswith(RETRY_PREFIX):
        return topic, queue_id
    group = group_or_error(topic.removeprefix(RETRY_PREFIX), find_group)
    if reconsume_times < limit_of(group, own_limit, version):
        return topic, queue_id
    dead = DLQ_PREFIX + group.group_name
    topic_or_error(dead, DLQ_QUEUES, 0, make_topic)
    return dead, 0


def limit_of(group: SubscriptionGroupConfig, own_limit: int | None, version: int) -> int:
    if own_limit is not None and version >= FIRST_VERSION_WITH_LIMIT:
        return own_limit
    return group.retry_max_times


def group_or_error(name: str, find_group: FindGroup) -> SubscriptionGroupConfig:
    group = find_group(name)
    if group is None:
        raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {name} {FAQ}")
    return group


def topic_or_error(name: str, queues: int, sys_flag: int, make_topic: MakeTopic) -> TopicConfig:
    topic = make_topic(name, queues, 6, sys_flag)
    if topic is None:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist")
    return topic


#: Bit of `TopicSysFlag`: a unit consumes the topic.
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
        """Answers request 36: stores a message again for its group, with a delay or as a dead letter."""
        header = Header(request.ext_fields)
        physical_offset, level = header.number("offset"), header.number("delayLevel")
        group = group_or_error(header.text("group"), self._find_group)
        self._check_broker()
        # As in 4.9.4, the message is dropped and the answer is success.
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
        queue_id = random.randrange(group.retry_queue_nums)  # noqa: S311  # any queue will do
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
            # Stored: the broker does not wait for the disk here, and an error would make the consumer store it again.
            _log.warning("a message that was sent back is not yet on the disk: %s", error)
        except RmqError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, status_of(error)) from error


def retried_properties(message: StoredMessage, delay_level: int) -> dict[str, str]:
    """Returns the properties of a retry, which contain the message's original topic and the delay."""
    properties = dict(message.properties)
    # A message sent back once more keeps its first topic.
    properties.setdefault("RETRY_TOPIC", message.topic)
    # As in RocketMQ, messages stored again do not wait for the disk.
    properties |= {"WAIT": "false", "DELAY": str(delay_level)}
    # Id of the first delivery, kept over all retries.
    if not properties.get("ORIGIN_MESSAGE_ID", "").strip():
        properties["ORIGIN_MESSAGE_ID"] = message.offset_msg_id
    return properties
