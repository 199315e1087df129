"""`rmqfast.Message`: a frozen value that is cheap to make."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rmqfast import Message
from rmqfast.errors import ArgumentError


class Order(Message):
    """A subclass has a `__dict__`, so that it is filled in another way."""


def fields_of(message: Message) -> list[object]:
    return [getattr(message, field.name) for field in dataclasses.fields(message)]


@pytest.mark.parametrize("kind", [Message, Order])
def test_a_message_has_the_fields_that_it_was_given(kind: type[Message]) -> None:
    message = kind("t", b"x", "tag", ["k1", "k2"], {"a": "1"}, 3, False, 2, 7, 9)
    assert fields_of(message) == ["t", b"x", "tag", "k1 k2", {"a": "1"}, 3, False, 2, 7, 9]
    assert type(message) is kind
    assert fields_of(kind("t", b"x")) == ["t", b"x", None, None, {}, 0, True, 0, 0, None]


def test_keys_are_one_text_however_they_were_given() -> None:
    given = ("a b", ["a", "b"], ("a",), None)
    assert [Message("t", b"", keys=keys).keys for keys in given] == ["a b", "a b", "a", None]
    with pytest.raises(TypeError):
        Message("t", b"", keys=[1])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("timer", "name", "value"),
    [
        ({"delay": 1.5}, "TIMER_DELAY_MS", "1500"),
        ({"delay": timedelta(hours=1)}, "TIMER_DELAY_MS", "3600000"),
        ({"delay": 0.0001}, "TIMER_DELAY_MS", "1"),
        ({"deliver_at": datetime(2026, 11, 18, 11, 6, 40, 123000)}, "TIMER_DELIVER_MS", "1795000000123"),  # noqa: DTZ001
        (
            {"deliver_at": datetime(2026, 11, 18, 12, 6, 40, 123999, tzinfo=timezone(timedelta(hours=1)))},
            "TIMER_DELIVER_MS",
            "1795000000123",
        ),
    ],
)
def test_a_timer_is_the_property_of_rocketmq_5(timer: dict[str, Any], name: str, value: str) -> None:
    message = Message("t", b"x", properties={"a": "1", name: "9"}, **timer)
    assert message.properties == {"a": "1", name: value}
    assert dataclasses.replace(message, body=b"y").properties == message.properties
    assert Message("t", b"x", delay=0).properties == {}


@pytest.mark.parametrize(
    "timer",
    [
        {"delay": -1},
        {"delay": timedelta(seconds=-1)},
        {"delay": float("nan")},
        {"delay": float("inf")},
        {"delay": 1, "deliver_at": datetime(2026, 11, 18, tzinfo=UTC)},
        {"delay": 1, "delay_level": 1},
    ],
)
def test_a_timer_that_cannot_be_or_two_of_them_are_refused(timer: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="delay"):
        Message("t", b"x", **timer)


def test_a_message_cannot_be_changed_and_the_draft_does_not_leak() -> None:
    message = Message("t", b"x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.topic = "u"  # type: ignore[misc]
    assert type(message) is Message


COPIES: list[Callable[[Message], Message]] = [
    copy.copy,
    dataclasses.replace,
    lambda message: pickle.loads(pickle.dumps(message)),  # noqa: S301
]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_is_equal(copied: Callable[[Message], Message]) -> None:
    message = Message("t", b"x", keys=["a"], properties={"p": "1"}, delay_level=2)
    assert copied(message) == message
    assert copied(message) != Message("t", b"x", keys=["a"], properties={"p": "1"})
