"""Checks names and messages before they are sent to brokers.

Source: `Validators`, `TopicValidator`.
"""

from __future__ import annotations

import re
from typing import Protocol

from rmqfast.errors import ClientError
from rmqfast.remoting.response_code import ResponseCode

MAX_GROUP = 255
MAX_TOPIC = 127
DEFAULT_PRODUCER_GROUP = "DEFAULT_PRODUCER"
DEFAULT_CONSUMER_GROUP = "DEFAULT_CONSUMER"
#: Topics that only brokers write to.
FORBIDDEN_TOPICS = frozenset(
    {
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")
_ALLOWED = "allowing only ^[%|a-zA-Z0-9_-]+$"


class HasTopicAndBody(Protocol):
    """A message to check."""

    @property
    def topic(self) -> str:
        """The topic."""

    @property
    def body(self) -> bytes | None:
        """The body."""


def check_group(group: str) -> None:
    """Checks the name of a group.

    Raises:
        ClientError: It is blank, longer than 255 characters, or has illegal characters.

    Example:
        >>> check_group("orders")
        >>> check_group("")
        Traceback (most recent call last):
            ...
        rmqfast.errors.ClientError: the specified group is blank

    Source: `Validators.checkGroup`.
    """
    if not group or not group.strip():
        raise ClientError("the specified group is blank")
    if len(group) > MAX_GROUP:
        raise ClientError(f"the specified group is longer than group max length {MAX_GROUP}.")
    if _NAME.fullmatch(group) is None:
        raise ClientError(f"the specified group[{group}] contains illegal characters, {_ALLOWED}")


def check_producer_group(group: str) -> None:
    """Checks the group of a producer.

    Raises:
        ClientError: As `check_group`, or it is Java's default group.

    Source: `DefaultMQProducerImpl.checkConfig`.
    """
    check_group(group)
    if group == DEFAULT_PRODUCER_GROUP:
        raise ClientError(f"producerGroup can not equal {group}, please specify another one.")


def check_consumer_group(group: str) -> None:
    """Checks the group of a consumer.

    Raises:
        ClientError: As `check_group`, or it is Java's default group.

    Source: `DefaultMQPushConsumerImpl.checkConfig`.
    """
    check_group(group)
    if group == DEFAULT_CONSUMER_GROUP:
        raise ClientError(f"consumerGroup can not equal {group}, please specify another one.")


def check_topic(topic: str) -> None:
    """Checks the name of a topic.

    Raises:
        ClientError: It is blank, longer than 127 characters, or has illegal characters.

    Source: `Validators.checkTopic`.
    """
    if not topic or not topic.strip():
        raise ClientError("The specified topic is blank")
    if len(topic) > MAX_TOPIC:
        raise ClientError(f"The specified topic is longer than topic max length {MAX_TOPIC}.")
    if _NAME.fullmatch(topic) is None:
        raise ClientError(f"The specified topic[{topic}] contains illegal characters, {_ALLOWED}")


def check_message(message: HasTopicAndBody | None, *, max_message_size: int) -> None:
    """Checks a message before it is sent.

    Raises:
        ClientError: Code 13 if the body is illegal, -1 if the topic is.

    Source: `Validators.checkMessage`.
    """
    if message is None:
        raise _illegal("the message is null")
    check_topic(message.topic)
    if message.topic in FORBIDDEN_TOPICS:
        raise ClientError(f"Sending message to topic[{message.topic}] is forbidden.")
    if message.body is None:
        raise _illegal("the message body is null")
    if len(message.body) == 0:
        raise _illegal("the message body length is zero")
    if len(message.body) > max_message_size:
        raise _illegal(f"the message body size over max value, MAX: {max_message_size}")


def _illegal(text: str) -> ClientError:
    return ClientError(text, response_code=ResponseCode.MESSAGE_ILLEGAL)
