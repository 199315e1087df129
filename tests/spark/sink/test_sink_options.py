"""Texts of a sink's options to values; what is misspelt, missing or out of range says what it may be."""

from __future__ import annotations

import pickle

import pytest

from rmqfast._native import SparkOptions, TopicSink
from rmqfast.errors import ArgumentError

FIELDS = [("body", "string")]
GIVEN = {"nameServer": "10.0.0.1:9876;10.0.0.2:9876", "topic": "orders"}
REFUSED = {
    "topik": ("a", "unknown option topik; did you mean topic"),
    "zzz": ("a", "the options are nameServer, topic, group"),
    "storePath": ("/data", "option storePath: is a store's; this sink sends to brokers"),
    "path": ("/data", "option path: is a store's"),
    "nameServer": ("10.0.0.1", "10.0.0.1"),
    "topic ": ("a,b", "unknown option topic ; did you mean topic"),
    "topic": ("a b", "option group or topic: The specified topic[a b] contains illegal characters"),
    "group": ("a b", "option group or topic: the specified group[a b] contains illegal characters"),
    "accessKey": ("me", "expected the options accessKey and secretKey, got one of them"),
    "tls": ("true", "option tls (with tlsTrust, tlsCertificate, tlsKey, tlsVerify): trust: expected a file"),
    "tlsVerify": ("no", "option tlsVerify: expected true or false, got 'no'"),
    "batchSize": ("0", "option batchSize: expected a number from 1 to 32767, got '0'"),
    "inFlight": ("x", "option inFlight: expected a number from 1 to 64, got 'x'"),
    "retryTimeoutMs": ("-1", "option retryTimeoutMs: expected a number from 0 to 86400000, got '-1'"),
    "maxMessageSize": ("4m", "option maxMessageSize: expected a number from 1"),
    "sendTimeoutMs": (" ", "option sendTimeoutMs: expected a number from 1 to 86400000, got ' '"),
}


@pytest.mark.parametrize(("name", "said"), REFUSED.items(), ids=list(REFUSED))
def test_an_option_that_cannot_be_says_what_it_may_be(name: str, said: tuple[str, str]) -> None:
    text, words = said
    with pytest.raises(ArgumentError) as caught:
        TopicSink(GIVEN | {name: text}, FIELDS)
    assert words in str(caught.value)


def test_names_may_be_in_any_case_and_spark_s_own_are_passed_over() -> None:
    given = {name.upper(): text for name, text in GIVEN.items()} | {"CHECKPOINTLOCATION": "/c", "batchsize": "10"}
    assert TopicSink(given, FIELDS).topic == "orders"
    assert SparkOptions("sink", given).values["batch_size"] == 10


def test_a_name_server_is_needed_as_the_environment_of_executors_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.9:9876")
    with pytest.raises(ArgumentError, match=r"option nameServer: .* got none"):
        TopicSink({"topic": "orders"}, FIELDS)


def test_a_sink_is_pickled_to_the_tasks() -> None:
    fields = [*FIELDS, ("tags", "string"), ("queue_offset", "bigint")]
    sink = pickle.loads(pickle.dumps(TopicSink(GIVEN | {"accessKey": "me", "secretKey": "hidden"}, fields)))  # noqa: S301
    assert (sink.topic, sink.columns) == ("orders", ["body", "tags"])


def test_secrets_are_not_shown() -> None:
    options = GIVEN | {"accessKey": "me", "secretKey": "hidden1", "securityToken": "hidden2"}
    assert "hidden" not in repr(TopicSink(options, FIELDS))
