"""Checks names and messages before they are sent to brokers.

Source: `Validators`, `TopicValidator`.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from rmqfast._native import MAX_TOPIC, name_problem
from rmqfast.errors import ClientError
from rmqfast.remoting.response_code import ResponseCode

__all__ = [
    "MAX_TOPIC",
    "check_consumer_group",
    "check_group",
    "check_message",
    "check_producer_group",
    "check_topic",
]


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
    _check("group", group)


def check_producer_group(group: str) -> None:
    """Checks the group of a producer.

    Raises:
        ClientError: As `check_group`, or it is Java's default group.

    Source: `DefaultMQProducerImpl.checkConfig`.
    """
    _check("producer group", group)


def check_consumer_group(group: str) -> None:
    """Checks the group of a consumer.

    Raises:
        ClientError: As `check_group`, or it is Java's default group.

    Source: `DefaultMQPushConsumerImpl.checkConfig`.
    """
    _check("consumer group", group)


def check_topic(topic: str) -> None:
    """Checks the name of a topic.

    Raises:
        ClientError: It is blank, longer than 127 characters, or has illegal characters.

    Source: `Validators.checkTopic`.
    """
    _check("topic", topic)


def check_message(message: HasTopicAndBody | None, *, max_message_size: int) -> None:
    """Checks a message before it is sent.

    Raises:
        ClientError: Code 13 if the body is illegal, -1 if the topic is.

    Source: `Validators.checkMessage`.
    """
    if message is None:
        raise _illegal("the message is null")
    _check("sent topic", message.topic)
    if message.body is None:
        raise _illegal("the message body is null")
    if len(message.body) == 0:
        raise _illegal("the message body length is zero")
    if len(message.body) > max_message_size:
        raise _illegal(f"the message body size over max value, MAX: {max_message_size}")


def _illegal(text: str) -> ClientError:
    return ClientError(text, response_code=ResponseCode.MESSAGE_ILLEGAL)


_Rule: TypeAlias = Literal["group", "producer group", "consumer group", "topic", "sent topic"]


def _check(rule: _Rule, name: str) -> None:
    problem = name_problem(rule, name)
    if problem is not None:
        raise ClientError(problem)
