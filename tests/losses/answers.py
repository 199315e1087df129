"""Harms answers of brokers and name servers, and reads topics as Spark's drivers and tasks do."""

from __future__ import annotations

import json
import logging
import random
import re
import resource
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rmqfast import EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast._native import TopicRead, read_piece
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import RmqError
from rmqfast.remoting import RequestCode
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.store import COLUMNS
from tests.broker.interop.frames import Frame
from tests.disks import ROOMY
from tests.proxy import Passage, Proxy, Stream
from tests.waiting import PATIENCE

from .attempt import Attempt, Key, Row, SilentLoss, judge, key_of, logged, rows_of

_CODES = (0, 1, 2, 3, 14, 16, 17, 19, 20, 21, 24, 26, 205, 215, -1, 10_000, 2**31 - 1)
_FIELDS = ("nextBeginOffset", "minOffset", "maxOffset", "suggestWhichBrokerId")
_OFFSETS = ("0", "-1", "1", str(2**62), str(2**63 - 1), str(-(2**63)), str(2**63), "x", "", "1e3")
#: Queues that the statistics do not list are asked for one by one.
_COUNTS = (0, -1, 1, 2, 3, 5, 100, 65_537, 2**31 - 1, 2**40, "x", None)


class _Harmed(NamedTuple):
    """The replacement of an answer.

    Attributes:
        late: What comes behind the next answer.
        altered: Messages whose records were altered where no checksum speaks of it.
        is_end: Whether the connection ends here.
    """

    frames: Sequence[bytes]
    late: Sequence[bytes] = ()
    altered: Sequence[Key] = ()
    is_end: bool = False


@dataclass
class Answers:
    """Harms the answers of an attempt, over any number of connections.

    Attributes:
        chance: Decides what is done.
        records: Records of the topics, by their messages.
        harms: What may be done, by the code of the request.
        left: How many answers are harmed yet.
        harm: What was done, in words.
        altered: Messages that were altered where no checksum speaks of it.
    """

    chance: random.Random
    records: Mapping[Key, bytes]
    left: int = 0
    harm: list[str] = field(default_factory=list)
    altered: set[Key] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def harmed(self, code: int, answer: bytes) -> _Harmed | None:
        """The harmed answer to a request of this code; None if it is unchanged."""
        harms = _HARMS.get(code)
        with self.lock:
            if harms is None or not self.left or self.chance.random() < 0.4:
                return None
            self.left -= 1
            name = self.chance.choice(list(harms))
            harmed = harms[name](_Hit(self.chance, Frame.read(answer), answer, self.records))
            self.harm.append(f"{name} of {RequestCode(code).name}")
            self.altered.update(harmed.altered)
            return harmed


class HarmedAnswers(Passage):
    """A connection whose answers go through `answers`."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._codes: dict[int, int] = {}

    def requests(self, stream: Stream) -> Stream:
        """Hands them on, and keeps what they ask."""
        for frame in _frames(stream):
            header = Frame.read(frame).header
            self._codes[header["opaque"]] = header["code"]
            yield frame

    def answers(self, stream: Stream) -> Stream:
        """Harms some."""
        late: Sequence[bytes] = ()
        for frame in _frames(stream):
            opaque = Frame.read(frame).header["opaque"]
            harmed = self._answers.harmed(self._codes.pop(opaque, -1), frame)
            yield from (frame,) if harmed is None else harmed.frames
            yield from late
            late = () if harmed is None else harmed.late
            if harmed is not None and harmed.is_end:
                return


class _Hit(NamedTuple):
    """An answer to be harmed, and the records of all topics."""

    chance: random.Random
    frame: Frame
    raw: bytes
    records: Mapping[Key, bytes]

    def with_header(self, **changes: Any) -> _Harmed:
        header = {name: value for name, value in (self.frame.header | changes).items() if value is not None}
        return _Harmed([Frame(self.frame.serialization, header, self.frame.body).written()])

    def with_fields(self, **changes: str | None) -> _Harmed:
        fields = {name: value for name, value in (self.frame.fields | changes).items() if value is not None}
        return self.with_header(extFields=fields)

    def with_body(self, body: bytes, altered: Sequence[Key] = ()) -> _Harmed:
        return _Harmed([self.frame.__class__(self.frame.serialization, self.frame.header, body).written()], (), altered)


def _fields(hit: _Hit) -> _Harmed:
    name = hit.chance.choice(_FIELDS)
    value = int(hit.frame.fields.get(name, 0))
    near = [str(value + distance) for distance in (-33, -1, 1, 2, 31, 500)]
    return hit.with_fields(**{name: hit.chance.choice([*_OFFSETS, *near, *near, None])})


def _opaque(hit: _Hit) -> _Harmed:
    opaque = hit.frame.header["opaque"]
    return hit.with_header(opaque=hit.chance.choice((opaque + 1, opaque - 1, 0, -1, 2**31 - 1)))


def _length(hit: _Hit) -> _Harmed:
    at = hit.chance.choice((0, 4))
    length = hit.chance.choice((0, 1, -1, 2**31 - 1, -(2**31), 1 << 24, len(hit.raw), len(hit.raw) - 5))
    return _Harmed([hit.raw[:at] + struct.pack(">i", length) + hit.raw[at + 4 :]])


def _head_bit(hit: _Hit) -> _Harmed:
    raw = bytearray(hit.raw)
    raw[hit.chance.randrange(max(len(raw) - len(hit.frame.body), 1))] ^= 1 << hit.chance.randrange(8)
    return _Harmed([bytes(raw)])


def _bits(hit: _Hit) -> _Harmed:
    body = bytearray(hit.frame.body)
    altered = []
    for _ in range(hit.chance.choice((1, 1, 1, 4)) if body else 0):
        at = hit.chance.randrange(len(body))
        records = records_in(hit.frame.body)
        altered += [key for key, *place in records if _is_unprotected(hit.frame.body, at, *place)]
        body[at] ^= 1 << hit.chance.randrange(8)
    return hit.with_body(bytes(body), altered)


def _is_unprotected(body: bytes, at: int, first: int, last: int) -> bool:
    """Whether a byte is of this record, and not of the message's body, which has a checksum."""
    own = first + 88
    (size,) = struct.unpack_from(">i", body, own - 4)
    return first <= at < last and not own <= at < own + size


def _records(change: Callable[[_Hit, list[bytes]], list[bytes]], hit: _Hit) -> _Harmed:
    """Whole records in another order, fewer, or others."""
    parts = [hit.frame.body[first:last] for _, first, last in records_in(hit.frame.body)]
    return hit.with_body(b"".join(change(hit, parts)) if parts else hit.frame.body)


def _fewer(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    first = hit.chance.randrange(len(parts))
    return parts[:first] + parts[hit.chance.randrange(first + 1, len(parts) + 1) :]


def _doubled(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    at = hit.chance.randrange(len(parts))
    return parts[: at + 1] + parts[at:]


def _of_other_queues(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    """Sound records of the same offsets, from other queues or topics: of some or of all messages."""
    own = [key for key, _, _ in records_in(b"".join(parts))]
    topic, queue, _ = hit.chance.choice([key for key in hit.records if key[:2] != own[0][:2]])
    places = own if hit.chance.random() < 0.5 else hit.chance.sample(own, hit.chance.randrange(1, len(own) + 1))
    others = {key: hit.records.get((topic, queue, key[2])) for key in places}
    return [others.get(key) or part for key, part in zip(own, parts, strict=True)]


def _of_another_place(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    """Records of the same queue, from another offset on."""
    (topic, queue, offset), *_ = next(iter(records_in(parts[0])))
    start = offset + hit.chance.choice((-20, -1, 1, 7, 32, 64))
    there = [hit.records.get((topic, queue, start + number)) for number in range(len(parts))]
    return [record for record in there if record]


def _route(hit: _Hit) -> _Harmed:
    if not hit.frame.body:
        return _Harmed([hit.raw])
    route = json.loads(hit.frame.body)
    queues, brokers = (hit.chance.choice(route[name]) for name in ("queueDatas", "brokerDatas"))
    address = hit.chance.choice(("127.0.0.2:1", "", "x", "127.0.0.2:99999", None))
    place, values = hit.chance.choice((
        ((queues, "readQueueNums"), _COUNTS),
        ((queues, "perm"), (0, 2, -1, 2**31, "x")),
        ((hit.chance.choice((queues, brokers)), "brokerName"), ("broker-b", "", None, 5)),
        ((brokers, "brokerAddrs"), ({}, *[{"0": address}] * 4)),
        ((route, hit.chance.choice(list(route))), ([], {}, None, "x", [None], [[]])),
    ))  # fmt: skip
    place[0][place[1]] = hit.chance.choice(values)
    return hit.with_body(json.dumps(route).encode())


def _stats(hit: _Hit) -> _Harmed:
    """Statistics have objects as the names of members, which JSON does not know."""
    table = {name: json.loads(numbers) for name, numbers in _STATS.findall(hit.frame.body.decode())}
    if not table:
        return _Harmed([hit.raw])
    queue, kind = hit.chance.choice(list(table)), hit.chance.choice(("offset", "left out", "renamed"))
    if kind == "offset":
        name = hit.chance.choice(("minOffset", "maxOffset"))
        near = [table[queue][name] + distance for distance in (-20, -1, 1, 20)]
        table[queue][name] = hit.chance.choice((*near, *near, -1, 2**62, 2**63 - 1, -(2**63), "x", None, 1.5))
    else:
        numbers = table.pop(queue)
        if kind == "renamed":
            renamed = json.loads(queue)
            renamed[hit.chance.choice(list(renamed))] = hit.chance.choice(("bills", "broker-b", 7, -1, None))
            table[json.dumps(renamed)] = numbers
    body = ",".join(f"{name}:{json.dumps(numbers)}" for name, numbers in table.items())
    return hit.with_body(f'{{"offsetTable":{{{body}}}}}'.encode())


_Change = Callable[[_Hit], _Harmed]
#: What may be done to any answer.
_OF_ALL: dict[str, _Change] = {
    "another code": lambda hit: hit.with_header(code=hit.chance.choice(_CODES)),
    "another opaque": _opaque,
    "another flag": lambda hit: hit.with_header(flag=hit.chance.choice((0, 2, 3, -1))),
    "twice": lambda hit: _Harmed([hit.raw, hit.raw]),
    "late": lambda hit: _Harmed([], [hit.raw]),
    "never": lambda _: _Harmed([]),
    "cut": lambda hit: _Harmed([hit.raw[: hit.chance.randrange(len(hit.raw))]], is_end=True),
    "another length": _length,
    "a bit of the head flipped": _head_bit,
    "a body that ends early": lambda hit: hit.with_body(
        hit.frame.body[: hit.chance.randrange(len(hit.frame.body) + 1)]
    ),
    "garbage": lambda hit: hit.with_body(
        hit.chance.choice((b"", bytes(100), hit.chance.randbytes(300), hit.frame.body + bytes(8)))
    ),
}
_HARMS: dict[int, dict[str, _Change]] = {
    RequestCode.PULL_MESSAGE: _OF_ALL
    | {
        "another code without a body": lambda hit: hit._replace(
            frame=Frame(hit.frame.serialization, hit.frame.header, b"")
        ).with_header(code=hit.chance.choice(_CODES)),
        "another number": _fields,
        "another number again": _fields,
        "no numbers": lambda hit: hit.with_header(extFields=None),
        "bits flipped": _bits,
        "records left out": partial(_records, _fewer),
        "a record doubled": partial(_records, _doubled),
        "records in another order": partial(_records, lambda hit, parts: hit.chance.sample(parts, len(parts))),
        "records of other queues": partial(_records, _of_other_queues),
        "records of another place": partial(_records, _of_another_place),
    },
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _OF_ALL | {f"another route {number}": _route for number in range(5)},
    RequestCode.GET_TOPIC_STATS_INFO: _OF_ALL | {f"other statistics {number}": _stats for number in range(3)},
}
_STATS = re.compile(r"(\{[^{}]*\}):(\{[^{}]*\})")


def records_in(body: bytes) -> Iterator[tuple[Key, int, int]]:
    """The messages of a body, and from where to where their records are."""
    at = 0
    while at + 91 <= len(body):
        (size,) = struct.unpack_from(">i", body, at)
        queue, _, offset = struct.unpack_from(">iiq", body, at + 12)
        (body_size,) = struct.unpack_from(">i", body, at + 84)
        name_at = at + 88 + body_size
        topic = body[name_at + 1 : name_at + 1 + body[name_at]].decode()
        yield (topic, queue, offset), at, at + size
        at += size


def _frames(stream: Stream) -> Stream:
    rest = b""
    for piece in stream:
        rest += piece
        while len(rest) >= 4 and len(rest) >= 4 + (size := struct.unpack_from(">I", rest)[0]):
            yield rest[: 4 + size]
            rest = rest[4 + size :]


CONFIG = ROOMY | {
    "mappedFileSizeCommitLog": "1048576",
    "mappedFileSizeConsumeQueue": "20000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "brokerIP1": "127.0.0.2",
}
TOPICS = {"orders": 4, "bills": 2, "others": 2}
#: Columns that need no properties.
PLAIN = ["topic", "queue_id", "queue_offset", "body", "store_timestamp"]
#: More than any queue has.
MOST_OFFSETS = 10_000
#: Bytes that one attempt may take beyond all before it.
MOST_MEMORY = 300 << 20
_RANGE = re.compile(r"topic (?P<topic>\S+), broker \S+, queue (?P<queue>\d+), offset (?P<offset>\d+)")
_LOSS = re.compile(
    r"(?P<topic>\S+), broker \S+, queue (?P<queue>\d+), offsets \d+ to \d+: messages are lost: "
    r"((?P<count>\d+) of )?offsets (?P<start>\d+) to (?P<end>\d+)"
)


class BrokerAnswers:
    """A cluster whose answers go through proxies; each attempt plans a read and reads its pieces."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="losses-")))
        cluster = self._stack.enter_context(EmbeddedCluster(directory, config=CONFIG))
        port = int(cluster.brokers[0].address.rpartition(":")[2])
        self._broker = self._stack.enter_context(Proxy(f"127.0.0.1:{port}", listen=f"127.0.0.2:{port}"))
        self._name_server = self._stack.enter_context(Proxy(cluster.name_server))
        _fill(cluster.name_server)
        read = TopicRead("topic batch", {"nameServer": cluster.name_server, "subscribe": ",".join(TOPICS)}, COLUMNS)
        rows = rows_of(batch for piece in read.plan() for batch in read_topic_piece(read, piece))
        self._truth = {key_of(row): row for row in rows}
        log = (directory / "commitlog" / f"{0:020}").read_bytes()
        self._records = {key_of(row): _record(log, row) for row in rows}

    def close(self) -> None:
        self._stack.close()

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Plans and reads while some answers are harmed, and compares the rows with those of the planned ranges."""
        del directory
        answers = Answers(random.Random(chance.random()), self._records)
        self._broker.passage = self._name_server.passage = lambda _: HarmedAnswers(answers)
        topics = chance.sample(list(TOPICS), chance.randrange(1, 3))
        options = {
            "nameServer": self._name_server.address,
            "subscribe": ",".join(topics),
            "pullTimeoutMs": "200",
            # a pull that failed is tried again after a second
            "retryTimeoutMs": "3000" if chance.random() < 0.1 else "200",
            "pullBatchSize": chance.choice(("1", "7", "32")),
            "pullsInFlight": chance.choice(("1", "4", "16")),
            "minPartitions": chance.choice(("1", "1", "5")),
            "verifyCrc": "true",
            "failOnDataLoss": chance.choice(("true", "false")),
            "tags": chance.choice(("*", "*", "*", "A")),
        }
        reading = _Reading(answers, options, chance)
        memory = _memory()
        thread = threading.Thread(target=reading.run, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        if thread.is_alive():
            raise SilentLoss(f"{reading.harm}: it hangs")
        if _memory() - memory > MOST_MEMORY:
            raise SilentLoss(f"{reading.harm}: it took {(_memory() - memory) >> 20} MiB")
        return reading.judge(self._truth, topics)


class _Reading:
    """A read of topics, planned and read while answers are harmed."""

    def __init__(self, answers: Answers, options: dict[str, str], chance: random.Random) -> None:
        self._answers, self._options = answers, options
        # those of the plan, those of the tasks, or both
        self._lefts = chance.choice(((0, 1), (0, 3), (0, 100), (1, 0), (2, 0), (1, 2)))
        # without properties they are not looked for
        self._columns = chance.choice((COLUMNS, COLUMNS, PLAIN))
        self._ranges: list[tuple[str, str, int, int, int]] = []
        self._rows: list[Row] = []
        self._lines: list[str] = []
        self._error: Exception | None = None

    @property
    def harm(self) -> str:
        return f"{', '.join(self._answers.harm) or 'no harm'}; {self._options}"

    def run(self) -> None:
        """Plans, and reads until an error."""
        with logged(logging.NOTSET, ("rmqfast.client.ranges", "rmqfast.spark")) as self._lines:
            try:
                self._read()
            except Exception as error:  # noqa: BLE001 - which one it is, is looked at afterwards
                self._error = error

    def _read(self) -> None:
        config = ClientConfig(name_server=self._options["nameServer"], request_timeout=0.1)
        read = TopicRead("topic batch", self._options, self._columns, config=config)
        self._answers.left = self._lefts[0]
        pieces = read.plan()
        self._answers.left = self._lefts[1]
        self._ranges = [one for piece in pieces for one in read_piece(piece)[1]]
        for piece in pieces:
            for batch in read_topic_piece(read, piece):
                self._rows += rows_of([batch])

    def judge(self, truth: dict[Key, Row], topics: list[str]) -> Attempt:
        """Compares what was read with what was planned."""
        # a machine that is busy answers late
        is_late = any(words in str(self._error) for words in ("timeout", "nothing came"))
        if self._error is not None and not (isinstance(self._error, RmqError) and (self._answers.harm or is_late)):
            raise SilentLoss(f"{self.harm}: {self._error!r}") from self._error
        altered = self._answers.altered
        marks = {truth[key][name] for key in altered for name in ("msg_id", "body")}
        planned = {
            (topic, queue, offset)
            for topic, _, queue, start, end in self._ranges
            for offset in range(start, min(end, start + MOST_OFFSETS))
        }
        own = {key: row for key, row in truth.items() if key in planned and key not in altered}
        is_filtered = self._options["tags"] != "*"
        if is_filtered:
            own = {key: row for key, row in own.items() if row["tags"] == "A"}
        wanted = {key: {name: row[name] for name in self._columns} for key, row in own.items()}
        returned = [(key_of(row), row) for row in self._rows if marks.isdisjoint((row.get("msg_id"), row["body"]))]
        if self._error is None:
            self._check_plan(truth, topics)
        # with a filter it is the broker's to say what it left out
        told = (lambda _: True) if self._error is not None or is_filtered else _Lost(self._lines).has
        rows, missing = judge(f"{self.harm}: {self._error or self._lines}", wanted, returned, told)
        return Attempt(self.harm, rows, missing, refused=self._error is not None)

    def _check_plan(self, truth: dict[Key, Row], topics: list[str]) -> None:
        """Offsets that no queue has are told of, too."""
        ends: dict[tuple[str, int], int] = {}
        for topic, queue, offset in truth:
            ends[topic, queue] = max(ends.get((topic, queue), 0), offset + 1)
        for topic, broker, queue, start, end in self._ranges:
            if topic not in topics or broker != "broker-a":
                raise SilentLoss(f"{self.harm}: planned {topic}, {broker}, {queue}, {start}, {end}")
            if end > ends.get((topic, queue), 0) and not self._lines:
                raise SilentLoss(
                    f"{self.harm}: planned to {end}, beyond {ends.get((topic, queue))}, and nothing is told"
                )


class _Lost:
    def __init__(self, lines: list[str]) -> None:
        self._places = {
            (match["topic"], int(match["queue"]), int(match["offset"]))
            for line in lines
            for match in _RANGE.finditer(line)
        }
        self._left = {
            (match["topic"], int(match["queue"]), int(match["start"]), int(match["end"])): int(match["count"] or 2**62)
            for line in lines
            for match in _LOSS.finditer(line)
        }

    def has(self, key: Key) -> bool:
        """Whether this message is said to be lost; of a stretch no more than it counts."""
        if key in self._places:
            return True
        topic, queue, offset = key
        for stretch, left in self._left.items():
            if stretch[:2] == (topic, queue) and stretch[2] <= offset < stretch[3] and left > 0:
                self._left[stretch] -= 1
                return True
        return False


def _fill(name_server: str) -> None:
    chance = random.Random("answers")
    with Producer("losses", name_server=name_server) as producer:
        for topic, queues in TOPICS.items():
            producer.create_topic(topic, queues)
            for number in range(60 * queues):
                start = f"{topic}-{number}-".encode()
                body = start + chance.randbytes(chance.choice((1, 100, 300))) if number % 40 else start * 1000
                message = Message(topic, body, tags=("A", "B", None)[number % 3], keys=f"{topic}-{number}")
                producer.send(message, MessageQueue(topic, "broker-a", number % queues))
        producer.send_many([Message("bills", b"batch-%d" % number, tags="A") for number in range(40)])


def _record(log: bytes, row: Row) -> bytes:
    return log[row["physical_offset"] : row["physical_offset"] + row["store_size"]]


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
