"""A conversation of several brokers and clients with a name server, and how the real one is asked."""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.broker.interop.frames import JSON, Connection, Frame
from tests.waiting import PATIENCE

CLUSTERS = ["c-one", "c-two", "DefaultCluster"]
BROKERS = ["broker-a", "broker-b", "broker-c", "host.example"]
TOPICS = ["orders", "%RETRY%group", "%DLQ%group", "TBW102", "unit", "unit_sub", "t", "SCHEDULE_TOPIC_XXXX", *CLUSTERS]
NAMESPACES = ["ORDER_TOPIC_CONFIG", "ns", "中"]


@dataclass(frozen=True)
class Step:
    """A request on a numbered connection; code -1 closes that."""

    connection: int
    code: int
    ext_fields: Mapping[str, str]
    body: bytes = b""
    version: int = 401


@dataclass(frozen=True)
class Answer:
    """What is compared of a response."""

    code: int
    remark: str | None
    ext_fields: dict[str, str] | None
    body: str

    @classmethod
    def of_json(cls, line: str) -> Answer:
        return cls(**json.loads(line))


def steps(seed: int = 494, count: int = 600) -> Iterator[Step]:
    """Everything that a name server is asked, in an order that the seed says; each change is looked at."""
    chance = random.Random(seed)
    makers = [_register, _register, _register, _slave, _unregister, _close, _kv, _kv, _perm, _delete, _data_version]
    for _ in range(count):
        yield chance.choice(makers)(chance)
        yield _look(chance)


def _address(broker: str, broker_id: int = 0) -> str:
    return f"127.0.0.1:{10911 + 100 * BROKERS.index(broker) + broker_id}"


def _identity(broker: str, cluster: str, broker_id: int = 0) -> dict[str, str]:
    address = _address(broker, broker_id)
    return {"brokerName": broker, "brokerAddr": address, "clusterName": cluster, "brokerId": str(broker_id)}


def _topic(chance: random.Random, name: str) -> dict[str, Any]:
    flag = {"unit": 1, "unit_sub": 2, "t": 3}.get(name, 0)
    queues = chance.choice([1, 4, 8])
    return {
        "topicName": name, "readQueueNums": queues, "writeQueueNums": queues, "perm": chance.choice([2, 4, 6, 7]),
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": flag, "order": False,
    }  # fmt: skip


def _version(chance: random.Random) -> dict[str, int]:
    return {"counter": chance.randrange(3), "timestamp": 1_690_000_000_000}


def _register(chance: random.Random) -> Step:
    broker = chance.choice(BROKERS)
    topics = {name: _topic(chance, name) for name in chance.sample(TOPICS, chance.randrange(6))}
    wrapper = {"dataVersion": _version(chance), "topicConfigTable": topics}
    filters = [f"10.0.0.{n}:1" for n in range(chance.choice([0, 0, 2]))]
    fields = _identity(broker, CLUSTERS[BROKERS.index(broker) % 2]) | {"haServerAddr": f"ha-of-{broker}:1"}
    if chance.random() < 0.15:
        return Step(BROKERS.index(broker), 103, fields, json.dumps(wrapper).encode(), 36)
    if chance.random() < 0.3:
        body, fields["compressed"] = _compressed(wrapper, filters), "true"
    else:
        body = json.dumps({"topicConfigSerializeWrapper": wrapper, "filterServerList": filters}).encode()
    right = str(zlib.crc32(body) & 0x7FFFFFFF)
    fields["bodyCrc32"] = chance.choice(["0", right, right, right, "12345"])
    return Step(BROKERS.index(broker), 103, fields, body)


def _compressed(wrapper: dict[str, Any], filters: list[str]) -> bytes:
    lines = ["{topicName} {readQueueNums} {writeQueueNums} {perm} SINGLE_TAG".format(**topic)
             for topic in wrapper["topicConfigTable"].values()]  # fmt: skip
    data = _block(json.dumps(wrapper["dataVersion"])) + len(lines).to_bytes(4, "big")
    return zlib.compress(data + b"".join(map(_block, lines)) + _block(json.dumps(filters)), 9)


def _block(text: str) -> bytes:
    return len(text).to_bytes(4, "big") + text.encode()


def _slave(chance: random.Random) -> Step:
    broker, broker_id = chance.choice(BROKERS), chance.choice([1, 2])
    fields = _identity(broker, CLUSTERS[BROKERS.index(broker) % 2], broker_id)
    wrapper = {"dataVersion": _version(chance), "topicConfigTable": {"slave": _topic(chance, "slave")}}
    if chance.random() < 0.2:  # the slave became the master, with the address that it had
        fields["brokerId"] = "0"
    body = json.dumps({"topicConfigSerializeWrapper": wrapper}).encode()
    return Step(10 * broker_id + BROKERS.index(broker), 103, fields | {"haServerAddr": f"ha-{broker_id}:1"}, body)


def _unregister(chance: random.Random) -> Step:
    broker, broker_id = chance.choice(BROKERS), chance.choice([0, 0, 1, 2])
    fields = _identity(broker, CLUSTERS[BROKERS.index(broker) % 2], broker_id)
    return Step(10 * broker_id + BROKERS.index(broker), 104, fields)


def _close(chance: random.Random) -> Step:
    return Step(chance.choice([0, 0, 1, 2]) * 10 + chance.randrange(len(BROKERS)), -1, {})


def _kv(chance: random.Random) -> Step:
    namespace, key = chance.choice(NAMESPACES), chance.choice([*TOPICS, "é/k"])
    if chance.random() < 0.7:
        return Step(99, 100, {"namespace": namespace, "key": key, "value": chance.choice(["broker-a:4", "", "x=1;y"])})
    return Step(99, 102, {"namespace": namespace, "key": key})


def _perm(chance: random.Random) -> Step:
    return Step(99, chance.choice([205, 327]), {"brokerName": chance.choice([*BROKERS, "nobody"])})


def _delete(chance: random.Random) -> Step:
    fields = {"topic": chance.choice(TOPICS)}
    if chance.random() < 0.5:
        fields["clusterName"] = chance.choice([*CLUSTERS, ""])
    return Step(99, 216, fields)


def _data_version(chance: random.Random) -> Step:
    broker = chance.choice(BROKERS)
    return Step(99, 322, _identity(broker, "c-one"), json.dumps(_version(chance)).encode())


def _look(chance: random.Random) -> Step:
    code = chance.choice([105, 105, 105, 105, 106, 106, 206, 224, 304, 311, 312, 313, 101, 219, 219])
    fields: dict[str, str] = {}
    if code == 105:
        fields = {"topic": chance.choice([*TOPICS, "unknown"])} | chance.choice(
            [{}, {"acceptStandardJsonOnly": "true"}]
        )
    elif code == 224:
        fields = {"cluster": chance.choice([*CLUSTERS, "unknown"])}
    elif code in {101, 219}:
        fields = {"namespace": chance.choice(NAMESPACES), "key": chance.choice(TOPICS)}
    return Step(99, code, fields, b"", chance.choice([400, 401]))


class RealNameServer:
    """A name server behind a port; connections are made as they are needed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: dict[int, Connection] = {}
        self._opaque = itertools.count()

    def ask(self, step: Step) -> Answer:
        connection = self._connections.get(step.connection)
        if connection is None:
            connection = self._connections[step.connection] = Connection(("127.0.0.1", self._port))
        opaque = next(self._opaque)
        header = {
            "code": step.code, "flag": 0, "language": "JAVA", "opaque": opaque,
            "serializeTypeCurrentRPC": JSON, "version": step.version, "extFields": dict(step.ext_fields),
        }  # fmt: skip
        connection.send(Frame(JSON, header, step.body).written())
        answer = connection.response(opaque, PATIENCE)
        assert answer is not None, step
        return Answer(answer.code, answer.header.get("remark"), answer.header.get("extFields"), answer.body.decode())

    def close(self, number: int) -> bool:
        connection = self._connections.pop(number, None)
        if connection is not None:
            connection.close()
        return connection is not None

    def close_all(self) -> None:
        for number in list(self._connections):
            self.close(number)
