"""Names and messages that brokers would not take are refused in Java's words."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.instance.validators import (
    check_consumer_group,
    check_group,
    check_message,
    check_producer_group,
    check_topic,
)
from rmqfast.errors import ClientError


class Sent(NamedTuple):
    topic: str
    body: bytes | None


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ("", "the specified group is blank"),
        ("  ", "the specified group is blank"),
        ("x" * 256, "the specified group is longer than group max length 255."),
        ("a b", "the specified group[a b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("g\n", "the specified group[g\n] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
    ],
)
def test_a_group_that_cannot_be_is_refused(group: str, text: str) -> None:
    with pytest.raises(ClientError) as caught:
        check_group(group)
    assert (str(caught.value), caught.value.response_code) == (text, -1)


@pytest.mark.parametrize("group", ["g", "x" * 255, "%RETRY%g|a-b_C9"])
def test_a_group_that_can_be_is_taken(group: str) -> None:
    check_group(group)


def test_the_groups_that_java_has_where_none_is_set_are_refused() -> None:
    with pytest.raises(ClientError, match="producerGroup can not equal DEFAULT_PRODUCER, please specify another one"):
        check_producer_group("DEFAULT_PRODUCER")
    with pytest.raises(ClientError, match="consumerGroup can not equal DEFAULT_CONSUMER, please specify another one"):
        check_consumer_group("DEFAULT_CONSUMER")


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("", "The specified topic is blank"),
        ("x" * 128, "The specified topic is longer than topic max length 127."),
        ("a.b", "The specified topic[a.b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("täg", "The specified topic[täg] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(topic: str, text: str) -> None:
    with pytest.raises(ClientError) as caught:
        check_topic(topic)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (None, 13, "the message is null"),
        (Sent("t", None), 13, "the message body is null"),
        (Sent("t", b""), 13, "the message body length is zero"),
        (Sent("t", b"12345"), 13, "the message body size over max value, MAX: 4"),
        (Sent("", b"1"), -1, "The specified topic is blank"),
        (Sent("SCHEDULE_TOPIC_XXXX", b"1"), -1, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused(message: Sent | None, code: int, text: str) -> None:
    with pytest.raises(ClientError) as caught:
        check_message(message, max_message_size=4)
    assert (str(caught.value), caught.value.response_code) == (text, code)


def test_a_message_as_large_as_allowed_is_taken() -> None:
    check_message(Sent("t", b"1234"), max_message_size=4)


@pytest.mark.parametrize(
    ("resource", "wrapped"),
    [
        ("t", "ns%t"),
        ("%RETRY%g", "%RETRY%ns%g"),
        ("%DLQ%g", "%DLQ%ns%g"),
        ("TBW102", "TBW102"),
        ("rmq_sys_x", "rmq_sys_x"),
        ("CID_RMQ_SYS_TRANS", "CID_RMQ_SYS_TRANS"),
        ("", ""),
    ],
)
def test_a_namespace_is_put_before_names_and_taken_off_again(resource: str, wrapped: str) -> None:
    assert wrap("ns", resource) == wrapped
    assert wrap("ns", wrapped) == wrapped
    assert unwrap("ns", wrapped) == resource
    assert wrap("", resource) == resource
