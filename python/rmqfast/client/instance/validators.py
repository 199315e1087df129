"""Checks names and messages before they are sent to brokers.

Source: `Validators`, `TopicValidator`, `DefaultMQProducerImpl`, `DefaultMQPushConsumerImpl`.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from rmqfast._native import MAX_TOPIC, name_problem
from rmqfast.errors import ClientError
from rmqfast.remoting.codes import ResponseCode

__all__ = [
    "MAX_TOPIC",
    "check_consumer_group",
    "check_group",
    "check_message",
    "check_producer_group",
    "check_topic",
]


class HasTopicAndBody(Protocol):
    """The fields of a message that are checked."""

    @property
    def topic(self) -> str: ...

    @property
    def body(self) -> bytes | None: ...


def check_group(group: str) -> None:
    _check("group", group)


def check_producer_group(group: str) -> None:
    _check("producer group", group)


def check_consumer_group(group: str) -> None:
    _check("consumer group", group)


def check_topic(topic: str) -> None:
    _check("topic", topic)


def check_message(message: HasTopicAndBody | None, *, max_message_size: int) -> None:
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
