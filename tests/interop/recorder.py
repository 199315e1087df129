"""A proxy before a real cluster that keeps the requests of clients in other languages, for tests that need no client.

python -m tests.interop.recorder [cpp go node csharp]     makes tests/golden/remoting/outsiders-4.9.4.jsonl.gz, or
                                                          these parts of it

A line is a request: `client`, `code`, `oneway`, `request` (the frame in hex). Kept is what a real 4.9.4 answered with 0
and what nobody answers, in the order in which it was sent, of a few of each client's scenarios. The C# client cannot be
installed here: its requests, `csharp`, are written by the names, types and order of the members in the public source of
NewLife.RocketMQ, and kept as a real 4.9.4 answered them. PHP's client is made of the C++ library.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import struct
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.broker.interop.cluster import SCENARIO, RealCluster
from tests.broker.interop.frames import JSON, ONE_WAY, RESPONSE, Connection, Frame
from tests.waiting import PATIENCE

from .outsiders import CPP, GO, NODE, Outsider
from .rocketmq import free_ports

GOLDEN = Path(__file__).parents[1] / "golden/remoting/outsiders-4.9.4.jsonl.gz"
VERSION = "4.9.4"
#: What is kept of each client, by the topic that a scenario has; of the Go client, which has one topic, all.
TOPICS = {"cpp": ("push", "retry", "orderly", "broadcast"), "node": ("push", "retry"), "go": ("go",)}
#: Of the same code and the same fields, so many at most; of sends and heartbeats, which others refer to, all.
EACH = 4
SENDS, HEARTBEAT = frozenset({10, 310, 320}), 34
#: What this project and the broker asked, and what goes to the name server.
OTHERS = frozenset({17, 40, 105})

Row = dict[str, Any]

#: As the serializers of .NET may write them: members as they are named, or with a small first letter; null or left out.
_SUBSCRIPTION = {
    "Topic": "cpp_push",
    "ExpressionType": "TAG",
    "SubString": "*",
    "TagsSet": None,
    "CodeSet": None,
    "ClassFilterMode": False,
    "FilterClassSource": None,
    "SubVersion": 639_000_000_000_000_000,  # ticks of 100 ns since the year 1
}
_CONSUMER = {
    "ConsumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
    "ConsumeType": "CONSUME_ACTIVELY",
    "GroupName": "g_csharp",
    "MessageModel": "CLUSTERING",
    "SubscriptionDataSet": [_SUBSCRIPTION],
    "UnitMode": False,
}
_HEARTBEATS = (
    {"ClientID": "127.0.0.1@1", "ProducerDataSet": [{"GroupName": "p"}, {"GroupName": "q"}], "ConsumerDataSet": []},
    {"ClientID": "127.0.0.1@2", "ProducerDataSet": [{"GroupName": "q"}], "ConsumerDataSet": [_CONSUMER]},
)


class Recorder:
    """Stands before the name server and the broker of a cluster, and has the face of one; `with` starts and ends it."""

    def __init__(self, cluster: RealCluster) -> None:
        self.directory, self.version = cluster.directory, cluster.version
        self.exchanges: list[Row] = []
        self._real = cluster
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._name_server, self._broker = (self._listen(port) for port in free_ports(2))
        self._moved = tuple(zip(_forms(cluster.broker), _forms(self.broker), strict=True))

    @property
    def name_server(self) -> str:
        """`host:port`, as that of a cluster."""
        return "{}:{}".format(*self._name_server.getsockname())

    @property
    def broker(self) -> str:
        """`host:port`, as that of a cluster."""
        return "{}:{}".format(*self._broker.getsockname())

    def __enter__(self) -> Self:
        for listener, port in (
            (self._name_server, self._real.name_server_port),
            (self._broker, self._real.broker_port),
        ):
            threading.Thread(target=self._accept, args=(listener, port), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        self._sockets.append(listener)
        return listener

    def _accept(self, listener: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", port))
                self._sockets += (client, server)
                open_requests: dict[int, Row] = {}
                pumps = ((client, server, open_requests), (server, client, open_requests))
                for pump in pumps:
                    threading.Thread(target=self._pump, args=pump, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, open_requests: dict[int, Row]) -> None:
        """Hands frames on; answers name this proxy, whose port has as many digits as the broker's."""
        with contextlib.suppress(OSError, ValueError):
            for data in _frames(source):
                self._keep(data, open_requests)
                for address, instead in self._moved:
                    data = data.replace(address, instead)  # noqa: PLW2901 - the frame with another address
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def _keep(self, data: bytes, open_requests: dict[int, Row]) -> None:
        frame = Frame.read(data)
        flag, opaque = int(frame.header["flag"]), int(frame.header["opaque"])
        with self._lock:
            if flag & RESPONSE:
                if opaque in open_requests:
                    open_requests.pop(opaque)["answer"] = frame.code
                return
            row = {"code": frame.code, "oneway": bool(flag & ONE_WAY), "request": data.hex()}
            self.exchanges.append(row)
            open_requests[opaque] = row


def _forms(address: str) -> tuple[bytes, bytes]:
    """An address as routes and as records have it: to that one the C++ client sends a message back."""
    host, _, port = address.rpartition(":")
    return address.encode(), socket.inet_aton(host) + int(port).to_bytes(4, "big")


def _frames(source: socket.socket) -> Iterator[bytes]:
    stream = source.makefile("rb")
    while len(head := stream.read(4)) == 4:
        yield head + stream.read(struct.unpack(">I", head)[0])


def recorded() -> list[Row]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def record(outsider: Outsider) -> Iterator[Row]:
    outsider.install()
    with (
        tempfile.TemporaryDirectory() as directory,
        RealCluster(VERSION, Path(directory) / "mq", SCENARIO) as cluster,
        Recorder(cluster) as recorder,
    ):
        outsider.play(recorder)  # type: ignore[arg-type]  # it has all of a cluster that an outsider looks at
        exchanges = list(recorder.exchanges)
    names = [f"{outsider.name}_{name}" if name != "go" else name for name in TOPICS[outsider.name]]
    kinds: Counter[tuple[object, ...]] = Counter()
    for row in exchanges:
        data = bytes.fromhex(row["request"])
        kind = (row["code"], *sorted(Frame.read(data).fields))
        belongs = row["code"] not in OTHERS and any(name.encode() in data for name in names)
        if (
            belongs
            and (row["oneway"] or row.pop("answer", None) == 0)
            and (kinds[kind] < EACH or row["code"] in {*SENDS, HEARTBEAT})
        ):
            kinds[kind] += 1
            yield {"client": outsider.name, **row}


def written() -> Iterator[Row]:
    """Requests of the C# client that a RocketMQ broker answers with 0."""
    with tempfile.TemporaryDirectory() as directory, RealCluster(VERSION, Path(directory) / "mq", SCENARIO) as cluster:
        connection = Connection(("127.0.0.1", cluster.broker_port))
        for number, frame in enumerate(_csharp()):
            data = Frame(frame.serialization, frame.header | {"opaque": number}, frame.body).written()
            connection.send(data)
            answer = connection.response(number, PATIENCE)
            if answer is None or answer.code:
                raise RuntimeError(f"a real broker answered {answer} to {frame}")
            yield {"client": "csharp", "code": frame.code, "oneway": False, "request": data.hex()}
        connection.close()


def _csharp() -> Iterator[Frame]:
    header = {"flag": 0, "language": "DOTNET", "opaque": 0, "serializeTypeCurrentRPC": "JSON", "version": 373}
    for heartbeat in _HEARTBEATS:
        for body in (heartbeat, _small(heartbeat), _without_null(_small(heartbeat))):
            yield Frame(JSON, {"code": HEARTBEAT, **header}, json.dumps(body, separators=(",", ":")).encode())
    yield Frame(JSON, {"code": 38, "extFields": {"consumerGroup": "g_csharp"}, **header}, b"")
    fields = {"clientId": "127.0.0.1@2", "producerGroup": "g_csharp", "consumerGroup": "g_csharp"}
    yield Frame(JSON, {"code": 35, "extFields": fields, **header}, b"")


def _small(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _small(one) for name, one in value.items()}
    return [_small(one) for one in value] if isinstance(value, list) else value


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(one) for name, one in value.items() if one is not None}
    return [_without_null(one) for one in value] if isinstance(value, list) else value


def main() -> None:
    """Records anew."""
    clients: dict[str, Callable[[], Iterator[Row]]] = {
        outsider.name: partial(record, outsider) for outsider in (CPP, GO, NODE)
    } | {"csharp": written}
    kept, anew = recorded(), sys.argv[1:] or list(clients)
    rows = [
        row
        for name, make in clients.items()
        for row in (make() if name in anew else (row for row in kept if row["client"] == name))
    ]
    with GOLDEN.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.writelines(json.dumps(row).encode() + b"\n" for row in rows)
    sys.stdout.write(f"{len(rows)} requests in {GOLDEN}\n")


if __name__ == "__main__":
    main()
