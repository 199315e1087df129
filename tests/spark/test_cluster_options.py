"""Options of a cluster as texts, which Rust checks for every source, mean what they mean as arguments."""

from __future__ import annotations

import pytest

from rmqfast._native import SparkOptions, TopicRead, TopicSink
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import ArgumentError

NEEDED = {"nameServer": "10.0.0.1:9876", "topic": "orders"}
TLS = {"tlsTrust": "ca.pem", "tlsCertificate": "me.pem", "tlsKey": "me.key"}
OF_TLS: list[dict[str, str]] = [
    {"tls": "true"},
    {"tls": "true", "tlsVerify": "false"},
    {"tlsVerify": "false"},
    TLS,
    *({name: text} for name, text in TLS.items()),
    {"tlsKey": "me.key", "tls": "false"},
]
GIVEN: list[dict[str, str]] = [
    {},
    {"nameServer": " 10.0.0.1:9876 ; http://MQ_INST_1_x.host:80;"},
    *(
        {"nameServer": text}
        for text in ("a", "a:0", "a:65536", "a:1,b:1", "a:1;b", "é\x1f:1", "::1:1", "[::1]:1", "'\"")
    ),
    {"accessKey": "me"},
    {"secretKey": "hidden"},
    {"accessKey": "me", "secretKey": "hidden"},
    {"securityToken": "hidden"},
]


def from_texts(texts: dict[str, str], kind: str) -> str:
    try:
        if kind == "sink":
            TopicSink(texts, [("body", "binary")])
        else:
            TopicRead(kind, texts, ["body"])
    except ArgumentError as error:
        return str(error)
    return "allowed"


def from_arguments(texts: dict[str, str], kind: str) -> str:
    values = SparkOptions(kind, texts).values
    names = ("name_server", "access_key", "secret_key", "security_token")
    try:
        ClientConfig(**{name: values[name] for name in names if values[name] is not None})
    except ArgumentError as error:
        return str(error)
    return "allowed"


@pytest.mark.parametrize("kind", ["topic batch", "topic stream"])
@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_texts_are_refused_as_arguments_are(given: dict[str, str], kind: str) -> None:
    assert from_texts(NEEDED | given, kind) == from_arguments(NEEDED | given, kind)


def test_what_cannot_be_is_refused_and_the_rest_is_not() -> None:
    outcomes = {from_texts(NEEDED | given, "sink") == "allowed" for given in (*GIVEN, *OF_TLS)}
    assert outcomes == {True, False}
    assert from_texts(NEEDED | TLS, "topic batch") == "allowed"
