"""Heartbeats that no client sends: a clear answer, and nothing registered of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmqfast.remoting.protocol.heartbeat_data import MAX_GROUPS, MAX_SUBSCRIPTIONS, HeartbeatData
from rmqfast.remoting.protocol.subscription_data import MAX_TAGS

from .client_control import Control
from .client_doubles import Line, request

GOOD_SUBSCRIPTION: dict[str, Any] = {"topic": "t", "subString": "*", "subVersion": 1}
GOOD_CONSUMER: dict[str, Any] = {"groupName": "g", "subscriptionDataSet": [GOOD_SUBSCRIPTION]}
GOOD: dict[str, Any] = {"clientID": "c", "consumerDataSet": [GOOD_CONSUMER], "producerDataSet": [{"groupName": "p"}]}


def _with_consumer(**members: Any) -> dict[str, Any]:
    return GOOD | {"consumerDataSet": [GOOD_CONSUMER, GOOD_CONSUMER | members]}


def _with_subscription(**members: Any) -> dict[str, Any]:
    return _with_consumer(subscriptionDataSet=[GOOD_SUBSCRIPTION, GOOD_SUBSCRIPTION | members])


ILLEGAL = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
CONSUMER, WANTED = "body.consumerDataSet[1]", "body.consumerDataSet[1].subscriptionDataSet[1]"


@pytest.mark.parametrize(
    ("value", "remark"),
    [
        ([], "body: expected an object, got a list"),
        ("c", "body: expected an object, got a text"),
        ({}, "body.clientID: expected a text, got nothing"),
        (GOOD | {"clientID": ""}, "body.clientID: expected a text, got an empty text"),
        (GOOD | {"clientID": "c" * 1025}, "body.clientID: expected at most 1024 characters, got 1025"),
        (GOOD | {"consumerDataSet": {}}, "body.consumerDataSet[0].groupName: expected a text, got nothing"),
        (GOOD | {"consumerDataSet": 5}, "body.consumerDataSet: expected a list, got a whole number"),
        (GOOD | {"consumerDataSet": [5]}, "body.consumerDataSet[0]: expected an object, got a whole number"),
        (GOOD | {"producerDataSet": [{}]}, "body.producerDataSet[0].groupName: expected a text, got nothing"),
        (GOOD | {"producerDataSet": [{"groupName": "../x"}]}, f"the specified group[../x] {ILLEGAL}"),
        (_with_consumer(groupName="../x"), f"the specified group[../x] {ILLEGAL}"),
        (_with_consumer(groupName="a@b"), f"the specified group[a@b] {ILLEGAL}"),
        (_with_consumer(groupName="g\n"), f"the specified group[g\n] {ILLEGAL}"),
        (_with_consumer(groupName="g" * 256), "the specified group is longer than group max length 255."),
        (_with_consumer(groupName=None), f"{CONSUMER}.groupName: expected a text, got nothing"),
        (_with_consumer(unitMode=[]), f"{CONSUMER}.unitMode: expected true or false, got a list"),
        (
            _with_consumer(messageModel=2),
            f"{CONSUMER}.messageModel: expected one of BROADCASTING, CLUSTERING, or its ordinal, got a whole number",
        ),
        (_with_subscription(topic="../../etc"), f"the specified topic[../../etc] {ILLEGAL}"),
        (_with_subscription(topic="t" * 263), "the specified topic is longer than topic max length 262."),
        (_with_subscription(subVersion=True), f"{WANTED}.subVersion: expected a whole number, got a flag"),
        (_with_subscription(subVersion="x"), f"{WANTED}.subVersion: expected a whole number, got a text"),
        (
            _with_subscription(subVersion=1 << 63),
            f"{WANTED}.subVersion: expected {-(1 << 63)} to {(1 << 63) - 1}, got {1 << 63}",
        ),
        (
            _with_subscription(codeSet=[1 << 31]),
            f"{WANTED}.codeSet: expected {-(1 << 31)} to {(1 << 31) - 1}, got {1 << 31}",
        ),
        (_with_subscription(codeSet=["A"]), f"{WANTED}.codeSet: expected a whole number, got a text"),
        (_with_subscription(tagsSet={"A": 1}), f"{WANTED}.tagsSet: expected a list, got an object"),
        (
            _with_subscription(tagsSet=["A"] * (MAX_TAGS + 1)),
            f"{WANTED}.tagsSet: expected at most 10000 items, got 10001",
        ),
        (
            _with_consumer(subscriptionDataSet=[GOOD_SUBSCRIPTION] * (MAX_SUBSCRIPTIONS + 1)),
            f"{CONSUMER}.subscriptionDataSet: expected at most 1000 items, got 1001",
        ),
        (
            GOOD | {"consumerDataSet": [GOOD_CONSUMER] * (MAX_GROUPS + 1)},
            "body.consumerDataSet: expected at most 1000 items, got 1001",
        ),
        (
            GOOD | {"producerDataSet": [{"groupName": "p"}] * (MAX_GROUPS + 1)},
            "body.producerDataSet: expected at most 1000 items, got 1001",
        ),
        (
            GOOD | {"consumerDataSet": [GOOD_CONSUMER | {"subscriptionDataSet": [GOOD_SUBSCRIPTION] * 1000}] * 11},
            "body: expected at most 10000 subscriptions, got 11000",
        ),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_registered(tmp_path: Path, value: Any, remark: str) -> None:
    control = Control(tmp_path)
    line = Line()
    answer = control.answer(request(34, line, json.dumps(value).encode()))
    assert (answer.code, answer.remark) == (1, remark)
    assert control.consumers.names() == []
    assert control.producers.table() == {}
    assert (control.groups, control.created, line.sent) == ({}, {}, [])
    assert control.tables.online == {}


def test_a_body_of_more_than_4_mib_is_not_even_read(tmp_path: Path) -> None:
    body = json.dumps(GOOD).encode()
    control = Control(tmp_path)
    assert control.answer(request(34, body=body + b" " * ((4 << 20) - len(body)))).code == 0
    answer = control.answer(request(34, body=body + b" " * ((4 << 20) - len(body) + 1)))
    assert (answer.code, answer.remark) == (1, "body: expected at most 4194304 bytes, got 4194305")


def test_one_connection_may_not_be_in_ever_more_groups(tmp_path: Path) -> None:
    control, line = Control(tmp_path), Line()
    for start in (0, 500, 500):  # the same groups again are no more
        groups = [GOOD_CONSUMER | {"groupName": f"g{start + number}"} for number in range(500)]
        body = json.dumps(GOOD | {"consumerDataSet": groups}).encode()
        assert control.answer(request(34, line, body)).code == 0
    body = json.dumps(GOOD | {"consumerDataSet": [GOOD_CONSUMER | {"groupName": "more"}]}).encode()
    answer = control.answer(request(34, line, body))
    assert (answer.code, answer.remark) == (1, "consumer groups of a connection: expected at most 1000, got 1001")
    assert control.consumers.group("more") is None
    assert "more" not in control.groups
    assert control.answer(request(34, Line(), body)).code == 0, "others have room"


def test_one_connection_may_not_have_ever_more_producer_groups(tmp_path: Path) -> None:
    control, line = Control(tmp_path), Line()
    answers = []
    for start in (0, 500, 500, 1000):  # the same groups again are no more
        producers = [{"groupName": f"p{start + number}"} for number in range(500)]
        body = json.dumps({"clientID": "c", "consumerDataSet": [GOOD_CONSUMER], "producerDataSet": producers}).encode()
        answers.append(control.answer(request(34, line, body)))
    assert [answer.code for answer in answers] == [0, 0, 0, 1]
    assert answers[-1].remark == "producer groups of a connection: expected at most 1000, got 1500"
    assert len(control.producers.table()) == 1000


def test_what_other_languages_write_is_read() -> None:
    body = b"""{"clientID":"c","unknown":[1],"consumerDataSet":[{"groupName":"g","consumeType":"CONSUME_POP",
        "messageModel":"CLUSTERING","unitMode":"false","subscriptionDataSet":[{"topic":"t","subString":null,
        "subVersion":"1795232057240","tagsSet":null,"codeSet":["-5"],"expressionType":""}]}]}"""
    heartbeat = HeartbeatData.of_body(body, now=9)
    (consumer,) = heartbeat.consumers
    (wanted,) = consumer.subscriptions
    assert (consumer.consume_type, consumer.message_model, consumer.unit_mode) == (None, "CLUSTERING", False)
    assert (wanted.sub_version, wanted.code_set, wanted.expression_type) == (1795232057240, (-5,), "TAG")
    assert (wanted.sub_string, heartbeat.producers) == ("*", ())


def test_a_subscription_without_version_has_the_time_as_its_version() -> None:
    body = json.dumps(_with_subscription(subVersion=None)).encode()
    assert HeartbeatData.of_body(body, now=77).consumers[1].subscriptions[1].sub_version == 77
