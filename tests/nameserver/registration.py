"""Asks a name server, and registers brokers at it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rmqfast.nameserver import NameServer
from rmqfast.remoting import Request, Response, fastjson
from tests.broker.client_doubles import Line


def ask(
    server: NameServer,
    code: int,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    version: int = 401,
    channel: Line | None = None,
) -> Response:
    """The answer; a name server asks nobody back."""
    channel = channel or Line()
    answer = server.process(Request(code, fields or {}, body, channel, version=version))
    assert (channel.asked, channel.sent) == ([], [])
    return answer


def identity(name: str = "broker-a", broker_id: int = 0, cluster: str = "c", address: str = "") -> dict[str, str]:
    return {
        "brokerName": name,
        "brokerAddr": address or f"127.0.0.1:1091{broker_id}",
        "clusterName": cluster,
        "brokerId": str(broker_id),
        "haServerAddr": f"ha-{broker_id}:1",
    }


def topic(name: str, queues: int = 4, **fields: Any) -> dict[str, Any]:
    return {"topicName": name, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6} | fields


def body(*topics: dict[str, Any], counter: int = 1, filters: list[str] | None = None) -> bytes:
    wrapper = {
        "dataVersion": {"counter": counter, "timestamp": 5},
        "topicConfigTable": {fields["topicName"]: fields for fields in topics},
    }
    return json.dumps({"topicConfigSerializeWrapper": wrapper, "filterServerList": filters}).encode()


def register(
    server: NameServer, *topics: dict[str, Any], channel: Line | None = None, counter: int = 1, **who: Any
) -> Response:
    answer = ask(server, 103, identity(**who), body(*topics, counter=counter), channel=channel)
    assert answer.code == 0, answer
    return answer


def topics(server: NameServer) -> set[str]:
    return set(json.loads(ask(server, 206).body)["topicList"])


def brokers(server: NameServer) -> dict[str, dict[int, str]]:
    table = fastjson.decode(ask(server, 106).body)["brokerAddrTable"]
    return {name: data["brokerAddrs"] for name, data in table.items()}
