"""A proxy before a real cluster that keeps the requests of clients in other languages, for tests that need no client.

python -m tests.interop.recorder [cpp go node csharp]     makes tests/golden/remoting/outsiders-4.9.4.jsonl.gz, or
                                                          these parts of it

A line is a request: `client`, `code`, `oneway`, `request` (the frame in hex). Kept is what a real 4.9.4 answered with 0
and what nobody answers, in the order in which it was sent, of a few of each client's scenarios. The C# client cannot be
installed here: its requests, `csharp`, follow the source of NewLife.RocketMQ, and are asked again. PHP's
client is made of the C++ library.
"""

from __future__ import annotations

import gzip
import json
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.broker.interop.cluster import SCENARIO, RealCluster
from tests.broker.interop.frames import ONE_WAY, RESPONSE, Connection, Frame
from tests.proxy import Passage, Proxy, Stream, frames
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


class Kept(Passage):
    """Keeps requests and the codes of their answers; answers name the proxies, whose ports have as many digits."""

    def __init__(self, exchanges: list[Row], moved: Iterable[tuple[bytes, bytes]]) -> None:
        self._exchanges, self._moved = exchanges, tuple(moved)
        self._open: dict[int, Row] = {}

    def requests(self, stream: Stream) -> Stream:
        return map(self._keep, frames(stream))

    def answers(self, stream: Stream) -> Stream:
        return map(self._keep, frames(stream))

    def _keep(self, data: bytes) -> bytes:
        frame = Frame.read(data)
        flag, opaque = int(frame.header["flag"]), int(frame.header["opaque"])
        if not flag & RESPONSE:
            row = {"code": frame.code, "oneway": bool(flag & ONE_WAY), "request": data.hex()}
            self._exchanges.append(row)
            self._open[opaque] = row
        elif opaque in self._open:
            self._open.pop(opaque)["answer"] = frame.code
        for address, instead in self._moved:
            data = data.replace(address, instead)
        return data


@dataclass(frozen=True)
class Recorded:
    """The face of a cluster, as far as an outsider looks at it."""

    directory: Path
    version: str
    name_server: str
    broker: str


@contextmanager
def recorded_cluster(cluster: RealCluster, exchanges: list[Row]) -> Iterator[Recorded]:
    """A cluster behind proxies that keep what clients ask."""
    listen = [f"127.0.0.1:{port}" for port in free_ports(2)]
    moved = list(zip(_forms(cluster.broker), _forms(listen[1]), strict=True))
    with (
        Proxy(cluster.name_server, lambda _: Kept(exchanges, moved), listen=listen[0]),
        Proxy(cluster.broker, lambda _: Kept(exchanges, moved), listen=listen[1]),
    ):
        yield Recorded(cluster.directory, cluster.version, *listen)


def _forms(address: str) -> tuple[bytes, bytes]:
    """An address as routes and as records have it: to that one the C++ client sends a message back."""
    host, _, port = address.rpartition(":")
    return address.encode(), socket.inet_aton(host) + int(port).to_bytes(4, "big")


def recorded() -> list[Row]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def record(outsider: Outsider) -> Iterator[Row]:
    outsider.install()
    exchanges: list[Row] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        RealCluster(VERSION, Path(directory) / "mq", SCENARIO) as cluster,
        recorded_cluster(cluster, exchanges) as behind,
    ):
        outsider.play(behind)  # type: ignore[arg-type]  # it has all of a cluster that an outsider looks at
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
    """The recorded requests of the C# client that a RocketMQ broker still answers with 0."""
    with tempfile.TemporaryDirectory() as directory, RealCluster(VERSION, Path(directory) / "mq", SCENARIO) as cluster:
        connection = Connection(("127.0.0.1", cluster.broker_port))
        for row in (row for row in recorded() if row["client"] == "csharp"):
            frame = Frame.read(data := bytes.fromhex(row["request"]))
            connection.send(data)
            answer = connection.response(frame.header["opaque"], PATIENCE)
            if answer is None or answer.code:
                raise RuntimeError(f"a real broker answered {answer} to {frame}")
            yield row
        connection.close()


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
