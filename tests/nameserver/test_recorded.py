"""Recorded requests of official clients: the answers have the same code, remark, fields and body."""

from __future__ import annotations

import json

import pytest

from rmqfast.nameserver import NameServer
from rmqfast.store.config import TopicConfig, built_in_topics
from tests.broker.client_doubles import Line
from tests.nameserver.registration import ask
from tests.unordered import unordered
from tests.wire_traffic import Exchange, exchanges

BUILT_IN = {topic.topic_name: topic for topic in built_in_topics("DefaultCluster", "broker-a")}
#: Answers of a 5.x name server have these in other words; ours speaks 4.9.4.
FROM_5 = [
    (',"enableActingMaster":false', ""),
    ("https://rocketmq.apache.org/docs/bestPractice/06FAQ", "http://rocketmq.apache.org/docs/faq/"),
]


class Broker:
    """The one behind the recording: it tells the name server of a topic once it has it."""

    def __init__(self, server: NameServer, address: str) -> None:
        self._server, self._address = server, address
        self._channel = Line()
        self._counter = 0
        self.topics: set[str] = set()

    def register(self, names: set[str]) -> None:
        self._counter += 1
        self.topics |= names
        table = {name: self._config(name).to_json() for name in names}
        wrapper = {"dataVersion": {"counter": self._counter, "timestamp": 5}, "topicConfigTable": table}
        fields = {
            "brokerName": "broker-a", "brokerAddr": self._address, "clusterName": "DefaultCluster", "brokerId": "0",
            "haServerAddr": "127.0.0.1:10912",
        }  # fmt: skip
        body = json.dumps({"topicConfigSerializeWrapper": wrapper}).encode()
        assert ask(self._server, 103, fields, body, channel=self._channel).code == 0

    def _config(self, name: str) -> TopicConfig:
        if name in BUILT_IN:
            return BUILT_IN[name]
        queues = 4 if name in {"wire", "wire_auto"} else 1
        return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)


def as_4_9_4(text: str) -> str:
    for theirs, ours in FROM_5:
        text = text.replace(theirs, ours)
    return text


def topics_of(exchange: Exchange) -> set[str]:
    """What the broker must have told before this was answered."""
    if exchange.code == 206:
        return set(json.loads(exchange.response_body)["topicList"])
    is_route = exchange.code == 105 and exchange.response_header and exchange.response_header["code"] == 0
    return {exchange.request_header["extFields"]["topic"]} if is_route else set()


@pytest.mark.parametrize(
    ("version", "address", "requests"), [("4.9.4", "127.0.0.1:25010", 123), ("5.3.3", "127.0.0.1:25410", 88)]
)
def test_each_recorded_request_is_answered_as_it_was(
    server: NameServer, version: str, address: str, requests: int
) -> None:
    broker = Broker(server, address)
    broker.register(set(BUILT_IN))
    asked = [exchange for exchange in exchanges(version) if exchange.server == "namesrv"]
    assert len(asked) == requests
    for exchange in asked:
        if new := topics_of(exchange) - broker.topics:
            broker.register(new)
        header, expected = exchange.request_header, exchange.response_header
        fields, body = header.get("extFields") or {}, exchange.request_body
        answer = ask(server, exchange.code, fields, body, version=header["version"])
        assert expected is not None
        assert answer.code == expected["code"], exchange
        assert answer.remark == (None if not expected.get("remark") else as_4_9_4(expected["remark"])), exchange
        assert (answer.ext_fields or {}) == (expected.get("extFields") or {}), exchange
        expected_body = as_4_9_4(exchange.response_body.decode()).encode()
        assert (len(answer.body), unordered(answer.body)) == (len(expected_body), unordered(expected_body)), exchange
        if exchange.code == 216:
            broker.topics.discard(fields["topic"])
