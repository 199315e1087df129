"""Recorded requests of RocketMQ's clients, sent again to a cluster; each answer is held against the recorded one.

python -m tests.broker.interop.replay CLUSTER [RECORDING]     (ours, 4.9.4 or 5.3.3; 4.9.4 or 5.3.3)

The recording keeps at most four exchanges of a kind in each step, so some offsets were never committed and some
messages never sent back; what follows from those alone is masked and says so. What clients of 5.3.3 asked a broker of
5.3.3 is held against the answers of a 4.9.4 that was asked the same (`replay_answers.py`).
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE, until

from . import wire_masks
from .cluster import ROOT, Cluster, cluster_of
from .frames import JSON, Connection, Frame, answer_to, wanting_answer
from .goldens import golden
from .moved_offsets import MovedOffsets

PROPERTIES = (
    "mappedFileSizeCommitLog=4194304",
    "mappedFileSizeConsumeQueue=20000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
    "transactionTimeOut=1000",
    "transactionCheckInterval=3000",
)
Row = dict[str, Any]
PULLS, HELD = (11, 361), 19
RACED = 25  # a pull that was faster than the heartbeat with its subscription
FOUND = 0
# A pull that finds nothing is answered after these milliseconds, and up to five seconds more; of the same length.
LONG_HOLD, SHORT_HOLD = b'"suspendTimeoutMillis":"15000"', b'"suspendTimeoutMillis":"05000"'
NOTIFIED, CHECKED = 40, 39
HEARTBEAT, CONSUMERS = 34, 38
VERSION = 401  # of 4.9.4
BEAT_EVERY = 30  # seconds, as Java's clients; what is silent for 120 s is closed
SEND, MAX_OFFSET, END_TRANSACTION = 310, 30, 37
# Steps that store something after their answers: a message of delay level 1, the end of a transaction.
LATER = ("delay", "tx-commit", "tx-rollback")
# Where the end of a transaction is noted, after the message that it commits.
ENDS = ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "0")
PENDING = "0"  # of a transaction whose end is unknown no broker says anything
# Made when a transaction was asked about for the fifteenth time, after as many intervals: not so far here.
LATE_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"


@dataclass(frozen=True)
class Difference:
    """An answer that is not as recorded."""

    row: int
    step: str
    code: int
    what: str
    recorded: Any
    got: Any

    def __str__(self) -> str:
        recorded, got = (str(value)[:1500] for value in (self.recorded, self.got))
        return f"{self.row} {self.step}, {self.code}: {self.what}\n  recorded {recorded}\n  got      {got}"


def recording(version: str) -> list[Row]:
    """The exchanges, in the order of their answers."""
    with gzip.open(ROOT / f"tests/golden/wire-{version}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


class Replay:
    """One recording on one cluster."""

    def __init__(self, rows: list[Row], cluster: Cluster, expected: list[Frame | None] | None = None) -> None:
        self.rows, self.cluster = rows, cluster
        self.recorded = [recorded_frame(row) for row in rows]
        self.expected = expected or self.recorded
        self.of_5 = rows[-1]["requestHeader"]["version"] > VERSION
        self.moved = MovedOffsets()
        self.connections: dict[int, Connection] = {}
        self.beats: dict[int, bytes] = {}
        self.last = {row["conn"]: number for number, row in enumerate(rows)}
        self.notified: dict[int, list[int]] = {}
        self.settles_within = PATIENCE
        self.awaited: dict[tuple[str, str], int] = {}
        found = re.search(r'"brokerAddrs":\{"?0"?:"([\d.:]+)"', bytes.fromhex(rows[0]["response"]).decode("latin-1"))
        assert found is not None
        self.brokers = (found[1], cluster.broker)

    def run(self) -> Iterator[Difference]:
        """Sends everything; tells what differs."""
        number = 0
        while number < len(self.rows):
            together = [number]
            while self._held(together[-1]) and self._held(together[-1] + 1):
                together.append(together[-1] + 1)
            for one in together:
                self._send(one)
            for one in together:
                yield from self._check(one)
                yield from self._leave(one)
            number = together[-1] + 1
            if number < len(self.rows) and self.rows[number - 1]["step"] != self.rows[number]["step"]:
                self._await_stored()
            self._beat()

    def _leave(self, number: int) -> Iterator[Difference]:
        """Closes a connection after its last exchange; by then it must have been notified as often as it was."""
        key = self.rows[number]["conn"]
        if self.last[key] != number:
            return
        for one in self.notified.pop(key, []):
            got = self.connections[key].request(NOTIFIED, PATIENCE if self.expected[one] else 0)
            yield from self.compare(one, got)
        if key in self.connections:
            self.connections.pop(key).close()

    def _held(self, number: int) -> bool:
        if number >= len(self.rows):
            return False
        expected = self.expected[number]
        return self.rows[number]["code"] in PULLS and expected is not None and expected.code == HELD

    def _raced(self, number: int) -> bool:
        """Whether an answer says only what was faster when it was recorded; not those of 5.3.3."""
        return not self.of_5 and self.rows[number].get("responseCode") == RACED

    def _is_early(self, number: int, got: Frame) -> bool:
        """Whether a pull of tags got its messages where RocketMQ refuses it until the next heartbeat."""
        row, expected = self.rows[number], self.expected[number]
        if row["code"] not in PULLS or expected is None or expected.code != RACED:
            return False
        asked = Frame.read(bytes.fromhex(row["request"])).fields
        return asked.get("expressionType", "TAG") == "TAG" and got.code in (FOUND, HELD)

    def _beat(self) -> None:
        """Consumers and producers say that they are there as often as Java's do: else a broker closes what is idle."""
        for key, connection in self.connections.items():
            if key in self.beats and connection.quiet > BEAT_EVERY:
                connection.send(self.beats[key])

    def _connection(self, row: Row) -> Connection:
        known = self.connections.get(row["conn"])
        if known is None or (known.closed and row["server"] == "namesrv"):  # which nobody tells that he is there
            ports = {"namesrv": self.cluster.name_server_port, "broker": self.cluster.broker_port}
            asked = [one for one in self.rows if one["conn"] == row["conn"] and from_server(one) and not one["oneway"]]
            answers = {one["code"]: bytes.fromhex(one["response"]) for one in asked}

            def answer(request: Frame) -> bytes | None:
                recorded = answers.get(request.code)
                return None if recorded is None else answer_to(request, recorded)

            self.connections[row["conn"]] = Connection(("127.0.0.1", ports[row["server"]]), answer)
            self._introduce(row["conn"])
        return self.connections[row["conn"]]

    def _introduce(self, key: int) -> None:
        """A consumer is known before it asks: its first heartbeat may be left out, or recorded later."""
        rows = [row for row in self.rows if row["conn"] == key and not from_server(row)]
        beat = next((number for number, row in enumerate(rows) if row["code"] == HEARTBEAT), None)
        if beat and any(row["code"] in (*PULLS, CONSUMERS) for row in rows[:beat]):
            self.connections[key].send(bytes.fromhex(rows[beat]["request"]))
            self.connections[key].response(rows[beat]["requestHeader"]["opaque"], PATIENCE)

    def _send(self, number: int) -> None:
        row = self.rows[number]
        if row["code"] == SEND and row["step"] in LATER:
            sent = row["requestHeader"]["extFields"]
            place = (sent["b"], sent["e"]) if row["step"] == "delay" else ENDS
            self.awaited[place] = self._size(place)
        if not from_server(row) and not self._raced(number):
            self._connection(row).send(self._asked(number))
        if row["code"] == HEARTBEAT:
            self.beats[row["conn"]] = bytes.fromhex(row["request"])
        if self._takes_effect(row):
            connection = self._connection(row)
            taken = connection.response(row["requestHeader"]["opaque"], PATIENCE)
            assert taken or connection.closed, f"{number}: nobody says that it was taken"

    @staticmethod
    def _takes_effect(row: Row) -> bool:
        """Whether a one-way request changes something: the next request may come on another connection."""
        if not row["oneway"] or from_server(row):
            return False
        return bool(row["code"] != END_TRANSACTION or row["requestHeader"]["extFields"]["commitOrRollback"] != PENDING)

    def _size(self, place: tuple[str, str]) -> int:
        fields = dict(zip(("topic", "queueId"), place, strict=True))
        header = {"code": MAX_OFFSET, "flag": 0, "language": "JAVA", "opaque": 1, "version": VERSION}
        connection = Connection(("127.0.0.1", self.cluster.broker_port))
        connection.send(Frame(JSON, header | {"extFields": fields}, b"").written())
        answer = connection.response(1, PATIENCE)
        connection.close()
        assert answer is not None
        return int(answer.fields["offset"])

    def _await_stored(self) -> None:
        """Waits until what a step stores later is there."""
        for place, before in self.awaited.items():
            until(lambda place=place, before=before: self._size(place) > before, f"a message in {place}")  # type: ignore[misc]
        self.awaited.clear()

    def _asked(self, number: int) -> bytes:
        data = bytes.fromhex(self.rows[number]["request"])
        if self._takes_effect(self.rows[number]):
            data = wanting_answer(data)
        return self.moved.request(data.replace(LONG_HOLD, SHORT_HOLD) if self._held(number) else data)

    def _check(self, number: int) -> Iterator[Difference]:
        row = self.rows[number]
        connection = self._connection(row)
        if from_server(row):
            # a notification was noted before the answer to the heartbeat that it follows from; what has an answer
            # arrives when the client asks for it, one row later
            if row["code"] == NOTIFIED:
                self.notified.setdefault(row["conn"], []).append(number)
            elif row["code"] == CHECKED:
                yield from self.compare(number, connection.request(CHECKED, PATIENCE))
            return
        if row["oneway"] or self._raced(number) or row["requestHeader"].get("extFields", {}).get("topic") == LATE_TOPIC:
            return
        yield from self._compare_settled(number, connection)

    def _compare_settled(self, number: int, connection: Connection) -> Iterator[Difference]:
        """The name server may hear of a topic a moment later: it is asked again."""
        row = self.rows[number]
        opaque = row["requestHeader"]["opaque"]
        got = connection.response(opaque, PATIENCE)
        differences = list(self.compare(number, got))

        def is_settled() -> bool:
            nonlocal got
            connection.send(bytes.fromhex(row["request"]))
            got = connection.response(opaque, PATIENCE)
            differences[:] = self.compare(number, got)
            return not differences or got is None

        if differences and got is not None and row["server"] == "namesrv":
            with contextlib.suppress(AssertionError):  # then they are told
                until(is_settled, patience=self.settles_within)
            self.settles_within = PATIENCE if not differences else 0.0  # it has heard by now what it will
        if got is not None and not from_server(row):
            self.moved.learn(Frame.read(bytes.fromhex(row["response"])), got)
        yield from differences

    def compare(self, number: int, got: Frame | None) -> Iterator[Difference]:
        row, recorded = self.rows[number], self.expected[number]

        def differs(what: str, one: Any, other: Any) -> Iterator[Difference]:
            if one != other:
                yield Difference(number, row["step"], row["code"], what, one, other)

        if got is None or recorded is None:
            headers = (frame and frame.header for frame in (recorded, got))
            yield from differs("whether something comes", *headers)
            return
        yield from differs("serialization", recorded.serialization, got.serialization)
        for name in ("flag", "language", "version"):
            yield from differs(name, recorded.header.get(name), got.header.get(name))
        if self._is_early(number, got):
            return
        yield from differs("code", recorded.code, got.code)
        yield from differs("remark", *(wire_masks.remark(frame) for frame in (recorded, got)))
        yield from differs("fields", wire_masks.fields(recorded), wire_masks.fields(got))
        if recorded.code == got.code:
            pair = (wire_masks.body(row["code"], frame.body, self.brokers) for frame in (recorded, got))
            yield from differs("body", *pair)


def from_server(row: Row) -> bool:
    """Whether the server asks the client."""
    return bool(row["direction"] == "server-to-client")


def recorded_frame(row: Row) -> Frame | None:
    """A frame that the server sent: an answer, or a request of its own."""
    data = row["request"] if from_server(row) else row.get("response")
    return Frame.read(bytes.fromhex(data)) if data else None


def expected(version: str) -> list[Frame | None] | None:
    """The answers of 4.9.4 to clients of another version; None if the recording has them."""
    if version == "4.9.4":
        return None
    return [row and Frame(row[0], row[1], bytes.fromhex(row[2])) for row in golden(f"replay-{version}")]


def replay(version: str, cluster: Cluster) -> list[Difference]:
    """Differences between a cluster's answers and the recorded ones."""
    run = Replay(recording(version), cluster, expected(version))
    try:
        return list(run.run())
    finally:
        for connection in run.connections.values():
            connection.close()


def main() -> None:
    name, version = sys.argv[1], (*sys.argv[2:], "4.9.4")[0]
    with tempfile.TemporaryDirectory() as directory, cluster_of(name, Path(directory) / "mq", PROPERTIES) as cluster:
        differences = replay(version, cluster)
    for difference in differences:
        sys.stdout.write(f"{difference}\n")
    counted = Counter((one.code, one.what) for one in differences)
    sys.stdout.write(f"{len(differences)} {counted}\n")


if __name__ == "__main__":
    main()
