"""Whoever reaches a name server may send it anything: it answers, and does not grow without bounds."""

from __future__ import annotations

import json
import tracemalloc
import zlib

import pytest

from rmqfast.nameserver import NameServer, broker_table, register_body, route_info
from rmqfast.remoting import Response
from tests.nameserver.registration import ask, body, brokers, identity, register, topic, topics

NAMES = ["../x", "..", ".", "a/b", "a\\b", "", "a\nb", "\x00", "\x1b[2J", "n" * 263, "\u202e", "\ud800"]


def send(server: NameServer, data: bytes, **fields: str) -> Response:
    return ask(server, 103, identity() | fields, data)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["brokerName", "clusterName", "brokerAddr"])
def test_a_broker_with_a_hostile_name_is_refused(server: NameServer, field: str, name: str) -> None:
    answer = send(server, body(topic("t")), **{field: name})
    assert (answer.code, (answer.remark or "")[:31]) == (
        1,
        "the header field " + field + " is no name"[: 14 - len(field)],
    )
    assert (brokers(server), topics(server)) == ({}, set())


@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_topic_with_a_hostile_name_is_passed_over(server: NameServer, name: str) -> None:
    assert send(server, body(topic("good"), topic(name), topic("fine"))).code == 0
    assert topics(server) == {"good", "fine"}


@pytest.mark.parametrize("missing", ["brokerName", "brokerAddr", "clusterName", "brokerId"])
@pytest.mark.parametrize("code", [103, 104])
def test_a_broker_says_who_it_is(server: NameServer, code: int, missing: str) -> None:
    fields = identity()
    del fields[missing]
    assert ask(server, code, fields, b"{}").remark == f"the header field {missing} is missing"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"garbage", "no json at character 0"),
        (b"[]", "the body is no object"),
        (b'{"topicConfigSerializeWrapper":5}', "topicConfigSerializeWrapper is no object"),
        (b'{"topicConfigSerializeWrapper":{"dataVersion":1}}', "dataVersion is no object"),
        (b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":"x"}}}', "counter is no number"),
        (b'{"topicConfigSerializeWrapper":{"topicConfigTable":[]}}', "the body"),
        (b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"t":1}}}', "a topic is no object"),
        (b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"t":{"perm":true}}}}', "perm is no number"),
        (b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"t":{"perm":4294967296}}}}', "perm is no number"),
        (b'{"filterServerList":{"a":1}}', "expected a list of at most 64 filter servers"),
        (json.dumps({"filterServerList": ["f:1"] * 65}).encode(), "expected a list of at most 64 filter servers"),
        (b'{"filterServerList":["../x"]}', "a filter server whose address is none"),
        (b'{"a":' * 100_000, "no json at character"),
    ],
)
def test_a_malformed_registration_is_refused(server: NameServer, data: bytes, reason: str) -> None:
    answer = send(server, data)
    if reason == "the body":
        assert (answer.code, topics(server)) == (0, set())
        return
    assert answer.code == 1
    assert (answer.remark or "").startswith("Failed to decode RegisterBrokerBody: ")
    assert reason in (answer.remark or "")
    assert brokers(server) == {}


def block(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


VERSION = block(b'{"counter":1,"timestamp":1}')


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expected 4 bytes, got 0"),
        (b"\xff\xff\xff\xff", "expected -1 bytes"),
        (b"\x7f\xff\xff\xff", "expected 2147483647 bytes, got 0"),
        (VERSION + b"\x7f\xff\xff\xff", "2147483647 blocks do not fit"),
        (VERSION + b"\xff\xff\xff\xff", "-1 blocks do not fit"),
        (VERSION + b"\0\0\0\1" + block(b"t 4 4"), "a topic has 5 fields, got 3"),
        (VERSION + b"\0\0\0\1" + block(b"t 4 x 6 SINGLE_TAG"), "a topic with a number that is none"),
        (VERSION + b"\0\0\0\1" + block(b"t 4 " + b"9" * 5000 + b" 6 SINGLE_TAG"), "a topic with a number that is none"),
        (VERSION + b"\0\0\0\0", "expected 4 bytes, got 0"),
        (block(b"[]"), "dataVersion is no object"),
    ],
)
def test_a_malformed_compressed_registration_is_refused(server: NameServer, data: bytes, reason: str) -> None:
    answer = send(server, zlib.compress(data), compressed="true")
    assert answer.code == 1
    assert reason in (answer.remark or "")


@pytest.mark.parametrize("data", [b"garbage", b"", zlib.compress(b"x" * 100)[:-8]])
def test_what_does_not_inflate_is_refused(server: NameServer, data: bytes) -> None:
    answer = send(server, data, compressed="true")
    assert answer.code == (0 if not data else 1)


def test_a_bomb_is_refused_in_little_memory(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_body, "MAX_REGISTRATION", 1 << 20)
    bomb = zlib.compress(bytes(8 << 20))
    tracemalloc.start()
    answer = send(server, bomb, compressed="true")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (answer.code, answer.remark) == (
        1, "Failed to decode RegisterBrokerBody: a registration inflates to more than 1048576 bytes",
    )  # fmt: skip
    assert peak < 3 << 20


def test_there_is_room_for_so_many_brokers(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_table, "MAX_BROKERS", 10)
    monkeypatch.setattr(broker_table, "MAX_ADDRESSES", 3)
    answers = [send(server, b"", brokerName=f"b{n}", brokerAddr=f"h:{n}", clusterName=f"c{n}") for n in range(50)]
    assert [answer.code for answer in answers] == [0] * 10 + [1] * 40
    assert answers[-1].remark == "there are 10 brokers already"
    answers = [send(server, b"", brokerName="b0", brokerAddr=f"h:{n}", brokerId=str(n)) for n in range(10)]
    assert [answer.code for answer in answers] == [0] * 3 + [1] * 7
    assert len(brokers(server)) == 10


def test_there_is_room_for_so_many_clusters(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_table, "MAX_CLUSTERS", 10)
    answers = [send(server, b"", clusterName=f"c{n}") for n in range(50)]
    assert [answer.code for answer in answers] == [0] * 10 + [1] * 40
    assert answers[-1].remark == "there are 10 clusters already"
    ask(server, 104, identity())
    assert send(server, b"", clusterName="new").code == 0


def test_there_is_room_for_so_many_addresses(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_table, "MAX_LIVE", 10)
    answers = [send(server, b"", brokerAddr=f"h:{n}") for n in range(50)]
    assert [answer.code for answer in answers] == [0] * 10 + [1] * 40
    assert brokers(server) == {"broker-a": {0: "h:9"}}


def test_there_is_room_for_so_many_topics(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_info, "MAX_QUEUE_DATA", 100)
    for round_ in range(10):
        register(server, *[topic(f"t{round_}-{n}") for n in range(30)], counter=round_)
    assert len(topics(server)) == 100
    for name in topics(server):
        ask(server, 216, {"topic": name})
    register(server, *[topic(f"u{n}") for n in range(200)], counter=99)
    assert len(topics(server)) == 100
    ask(server, 104, identity())
    assert topics(server) == set()
    register(server, *[topic(f"v{n}") for n in range(200)])
    assert len(topics(server)) == 100
