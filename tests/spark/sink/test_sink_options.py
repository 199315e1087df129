"""Texts of a sink's options to values; what is misspelt, missing or out of range says what it may be."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rmqfast._native import SparkOptions
from rmqfast.errors import ArgumentError
from rmqfast.spark.sink.options import SinkOptions

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
        SinkOptions.of(GIVEN | {name: text})
    assert words in str(caught.value)


def test_names_may_be_in_any_case_and_spark_s_own_are_passed_over() -> None:
    given = {name.upper(): text for name, text in GIVEN.items()} | {"CHECKPOINTLOCATION": "/c", "batchsize": "10"}
    options = SinkOptions.of(given)
    assert (options.name_server, options.topic, options.batch_size) == (*GIVEN.values(), 10)


def test_each_option_is_an_attribute(tmp_path: Path) -> None:
    texts = {"batchSize": "1", "inFlight": "2", "maxMessageSize": "3", "sendTimeoutMs": "4", "retryTimeoutMs": "0"}
    texts |= dict.fromkeys(("tls", "tlsVerify", "tlsCheckHost"), "true") | {"nameServer": "h:1"}
    for name in SparkOptions.names("sink"):
        texts.setdefault(name, f"a-{name}")
    options = SinkOptions.of(texts)
    assert (options.batch_size, options.in_flight, options.max_message_size) == (1, 2, 3)
    assert (options.send_timeout_ms, options.retry_timeout_ms) == (4, 0)
    config = options.client_config()
    assert (config.access_key, config.secret_key, config.security_token) == (
        "a-accessKey",
        "a-secretKey",
        "a-securityToken",
    )
    assert config.tls is not None
    assert (config.tls.trust, config.tls.certificate, config.tls.key) == (
        Path("a-tlsTrust"),
        Path("a-tlsCertificate"),
        Path("a-tlsKey"),
    )
    assert config.namespace == "a-namespace"


def test_a_name_server_is_needed_as_the_environment_of_executors_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.9:9876")
    with pytest.raises(ArgumentError, match=r"option nameServer: .* got none"):
        SinkOptions.of({"topic": "orders"})


def test_options_are_pickled_to_the_tasks() -> None:
    options = SinkOptions.of(GIVEN | {"accessKey": "me", "secretKey": "hidden"})
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301


def test_secrets_are_not_shown() -> None:
    shown = repr(SinkOptions.of(GIVEN | {"accessKey": "me", "secretKey": "hidden1", "securityToken": "hidden2"}))
    assert "hidden" not in shown


def test_a_file_of_authorities_is_enough_for_tls_and_false_is_without() -> None:
    assert SinkOptions.of(GIVEN).client_config().tls is None
    assert SinkOptions.of(GIVEN | {"tlsTrust": "ca.pem"}).client_config().tls is not None
    assert SinkOptions.of(GIVEN | {"tlsTrust": "ca.pem", "tls": "false"}).client_config().tls is None
    unverified = SinkOptions.of(GIVEN | {"tls": "true", "tlsVerify": "false"}).client_config().tls
    assert unverified is not None
    assert not unverified.verify
