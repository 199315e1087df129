"""Checkpoints of Spark streams harmed, of topics with a past: by what both sources ask, without a Spark session.

Checkpoints of stores, which are one number, are in `rust/spark/src/store/stream.rs`.

For each queue a stream reads every message behind its offset once. Where it does not, an error or a warning names the
queue: messages that are lost, that are read again, that nobody reads. A text that is no offset of the topic is refused.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import rmqfast
from rmqfast import Message, MessageQueue
from rmqfast._native import SparkStream, TopicRead
from rmqfast.errors import ArgumentError, DataLossError, RmqError
from rmqfast.spark.live.task import read_topic_piece
from tests.client.ranges.clusters import RestartableCluster

from .attempt import Attempt, SilentLoss, logged
from .harms import edit_json

_TIMES = (0, 1, -5, -(1 << 63), (1 << 63) - 1, (1 << 63) - 2, 1 << 63, 1_700_000_000_000)
_TEXTS = ("", " ", "{}", "null", "[]", "latest", '"earliest"', "0", '{"log": 5}', "[" * 10_000, '{"a":' * 5_000, "\0")


def harm(text: str, other: str, chance: random.Random) -> tuple[str, str]:
    """A harmed text, and in words how; `other` is the checkpoint of another topic."""
    if chance.randrange(5) == 0:
        return _harmed_text(text, other, chance)
    value: dict[str, Any] = json.loads(text)
    kinds = [chance.randrange(4) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    words = [(_edit_times(value, chance) if kind == 0 else None) or edit_json(chance, value) for kind in kinds]
    return json.dumps(value), "; ".join(filter(None, words))


def without_times(text: str) -> str:
    """The text as older releases wrote it."""
    value = json.loads(text)
    return json.dumps({topic: {name: of for name, of in brokers.items() if of} for topic, brokers in value.items()})


def _harmed_text(text: str, other: str, chance: random.Random) -> tuple[str, str]:
    at = chance.randrange(len(text))
    flipped = chr(ord(text[at]) ^ 1 << chance.randrange(7))
    # of a queue that is there twice the last one counts
    queue, number = text.index('"0": '), chance.randrange(20)
    return chance.choice((
        (text[:at], "cut off"),
        (text[:at] + flipped + text[at + 1 :], f"{text[at]!r} at {at} became {flipped!r}"),
        (chance.choice(_TEXTS), "another text in its place"),
        (f'{text[:queue]}"0": {number}, {text[queue:]}', f"queue 0 with {number} before it"),
        (other, "that of another topic"),
    ))  # fmt: skip


def _edit_times(value: dict[str, Any], chance: random.Random) -> str | None:
    """Another time in the name of the member that has them."""
    named = [of for of in value.values() if isinstance(of, dict)]
    members = [(of, name) for of in named for name, queues in of.items() if " stored " in name and not queues]
    if not members:
        return None
    brokers, name = chance.choice(members)
    broker, _, times = name.rpartition(" stored ")
    words = times.split(" ")
    at = chance.randrange(len(words))
    queue_id, _, time = words[at].partition(":")
    near = str(int(time) + chance.choice((-1, 1, 1000, -1000))) if time.isdigit() else "1"
    words[at] = chance.choice((
        "",
        f"{queue_id}:{chance.choice(_TIMES)}",
        *(f"{queue_id}:", f"17:{time}", f"{queue_id}:x", f":{time}"),
        *[f"{queue_id}:{near}"] * 3,
    ))  # fmt: skip
    del brokers[name]
    brokers[f"{broker} stored {' '.join(words)}"] = {}
    return f"times {times!r} became {' '.join(words)!r}"


COLUMNS = ["topic", "broker_name", "queue_id", "queue_offset", "body", "store_timestamp"]
#: Queue and offset.
Place = tuple[int, int]
#: Body and time of storing.
Row = tuple[bytes, int]
_BROKER = "broker-a"
#: Messages of a batch, so that a stream has some positions.
_BATCH = 11


@dataclass
class Topic:
    """A topic, and the positions at which streams were before it changed.

    Attributes:
        name: Its name.
        life: What became of it.
        positions: Texts of checkpoints, one behind the other.
        rows: What it has now.
        bounds: The first offset and the one behind the last, by queue.
    """

    name: str
    life: str
    positions: list[str] = field(default_factory=list)
    rows: dict[Place, Row] = field(default_factory=dict)
    bounds: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class _Broker:
    """A broker, and those who change its topics."""

    cluster: RestartableCluster
    admin: rmqfast.Admin
    producer: rmqfast.Producer
    sent: int = 0

    def fill(self, topic: str, queues: int, count: int, size: int = 20) -> None:
        """So many messages in each queue."""
        for queue_id in list(range(queues)) * count:
            self.sent += 1
            # a body that does not compress takes its room in the log
            body = f"{topic} {self.sent} ".encode() + random.Random(self.sent).randbytes(size)
            self.producer.send(Message(topic, body), queue=MessageQueue(topic, _BROKER, queue_id))


@contextmanager
def topics_with_a_past(directory: Path) -> Iterator[tuple[str, list[Topic]]]:
    """A broker's name server and its topics."""
    with (
        RestartableCluster(directory, fileReservedTime="0", deleteWhen="04") as cluster,
        rmqfast.Admin(name_server=cluster.name_server) as admin,
        rmqfast.Producer("losses", name_server=cluster.name_server) as producer,
    ):
        broker = _Broker(cluster, admin, producer)
        topics = [_retained(broker), *(_lived(broker, f"lived-{number}", life) for number, life in enumerate(_LIVES))]
        for topic in topics:
            read = read_of(cluster.name_server, topic.name, "topic batch")
            for piece in read.plan():
                topic.rows.update(rows_of(read, piece))
            stream = SparkStream.of_topic(read_of(cluster.name_server, topic.name, "topic stream"))
            ends = _offsets(stream.latest(None, is_limited=False), topic.name)
            begins = _offsets(stream.initial(), topic.name)
            topic.bounds = {queue_id: (begins[queue_id], end) for queue_id, end in ends.items()}
            stream.close()
            assert len(topic.rows) == sum(end - begin for begin, end in topic.bounds.values())
        yield cluster.name_server, topics


def read_of(name_server: str, topic: str, kind: str, **changes: str) -> TopicRead:
    """A read of all of a topic."""
    options = {"nameServer": name_server, "topic": topic, "startingOffsets": "earliest", "retryTimeoutMs": "3000"}
    return TopicRead(kind, options | changes, COLUMNS)


def rows_of(read: TopicRead, piece: bytes) -> Iterator[tuple[Place, Row]]:
    """The rows of a task."""
    for batch in read_topic_piece(read, piece):
        for row in batch.to_pylist():
            stored = int(row["store_timestamp"].timestamp() * 1000 + 0.5)
            yield (row["queue_id"], row["queue_offset"]), (row["body"], stored)


def _offsets(text: str, topic: str) -> dict[int, int]:
    return {int(queue_id): offset for queue_id, offset in json.loads(text)[topic][_BROKER].items()}


def _retained(broker: _Broker) -> Topic:
    """Its first messages have expired; the others of the broker came later."""
    topic = Topic("retained", "its first messages expired")
    broker.admin.create_topic(topic.name, queues=2)
    broker.fill(topic.name, 2, 18, size=50_000)
    topic.positions = _positions(broker, topic)
    broker.cluster.expire()
    broker.fill(topic.name, 2, 6)
    return topic


def _lived(broker: _Broker, name: str, life: str) -> Topic:
    topic = Topic(name, life)
    broker.admin.create_topic(name, queues=3)
    broker.fill(name, 3, 16)
    topic.positions = _positions(broker, topic)
    _LIVES[life](broker, name)
    return topic


def _positions(broker: _Broker, topic: Topic) -> list[str]:
    """The position of a stream after each batch."""
    stream = SparkStream.of_topic(
        read_of(broker.cluster.name_server, topic.name, "topic stream", maxOffsetsPerTrigger=str(_BATCH))
    )
    positions = [stream.initial()]
    while (end := stream.latest(positions[-1], is_limited=True)) != positions[-1]:
        positions.append(end)
    stream.close()
    return positions


def _anew(queues: int, count: int) -> Callable[[_Broker, str], None]:
    def change(broker: _Broker, topic: str) -> None:
        broker.admin.topics.delete(topic)
        broker.admin.create_topic(topic, queues=queues)
        broker.fill(topic, queues, count)

    return change


def _widen(broker: _Broker, topic: str) -> None:
    broker.admin.topics.update(topic, queues=5)
    broker.fill(topic, 5, 4)


#: What became of a topic.
_LIVES: dict[str, Callable[[_Broker, str], object]] = {
    "nothing came": lambda broker, topic: None,
    "it has grown": lambda broker, topic: broker.fill(topic, 3, 9),
    "it has more queues": _widen,
    "it has fewer queues": lambda broker, topic: broker.admin.topics.update(topic, queues=2),
    "it was made anew, empty": _anew(3, 0),
    "it was made anew, shorter": _anew(3, 5),
    "it was made anew, as long": _anew(3, 16),
    "it was made anew, longer, with fewer queues": _anew(2, 30),
}


#: Batches until nothing comes any more.
_MOST_BATCHES = 8
_BROKER = "broker-a"
#: One of them is in an error that tells of a checkpoint, or of what a queue has lost.
_WORDS = "checkpoint|messages are lost"


class CheckpointSubject:
    """Topics that lived on while their streams stood still."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        directory = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="losses-checkpoints-"))
        self._name_server, self._topics = self._stack.enter_context(topics_with_a_past(Path(directory) / "store"))

    def close(self) -> None:
        self._stack.close()

    def attempt(self, chance: random.Random, _: Path) -> Attempt:
        """Harms a checkpoint, and has a stream go on from there."""
        topic = chance.choice(self._topics)
        number = chance.randrange(len(topic.positions))
        way = chance.choice((*["latest"] * 3, "old PySpark", "planned again", "planned again"))
        texts = topic.positions[number : number + 2] if way == "planned again" else [topic.positions[number]]
        words = "as it was"
        if chance.randrange(4) == 0:
            texts, words = [without_times(text) for text in texts], "without times"
        if chance.randrange(8):
            at = chance.randrange(len(texts))
            texts[at], how = harm(texts[at], chance.choice(self._topics).positions[0], chance)
            words = f"{words}, {how}"
        is_strict = chance.randrange(2) == 0
        place = f"topic {topic.name} ({topic.life}), position {number}, {words}: {' to '.join(texts)[:300]}"
        where = f"{'strict' if is_strict else 'lax'}, {way}: {place}"
        return _Run(where, self._name_server, topic, is_strict=is_strict).judged(texts, way)


@dataclass(frozen=True)
class _Run:
    """A stream that goes on from a checkpoint.

    Args:
        where: The topic and the harm, for errors.
        name_server: Of the broker.
        topic: What is read.
        is_strict: `failOnDataLoss`.
    """

    where: str
    name_server: str
    topic: Topic
    is_strict: bool

    def judged(self, texts: Sequence[str], way: str) -> Attempt:
        """Reads all there is, and compares."""
        with logged() as told:
            try:
                rows = list(self._read(texts, way))
            except RmqError as error:
                return self._refused(texts, error)
            except BaseException as error:
                raise SilentLoss(f"{self.where}: expected an error of rmqfast, got {error!r}") from error
        positions = self._positions(texts)
        if positions is None:
            raise SilentLoss(f"{self.where}: expected an error, got {len(rows)} rows")
        seen = self._checked_rows(rows, told)
        missing = sum(self._judge_queue(queue_id, positions, seen, told) for queue_id in self.topic.bounds)
        backwards = [queue_id for queue_id in self.topic.bounds if self._goes_back(queue_id, positions)]
        if any(not self._own(queue_id, told) for queue_id in backwards):
            raise SilentLoss(f"{self.where}: the batch ends before it begins, and nobody is told: {told}")
        if self._is_sound(positions) and not backwards and told:
            raise SilentLoss(f"{self.where}: nothing is wrong, and a warning says {told}")
        return Attempt(self.where, rows=len(rows), missing=missing, refused=False)

    def _positions(self, texts: Sequence[str]) -> list[_Position] | None:
        """The positions in the texts; None if one is no checkpoint."""
        positions = [_parsed(text, self.topic.name) for text in texts]
        return None if None in positions else [position for position in positions if position is not None]

    def _read(self, texts: Sequence[str], way: str) -> Iterator[tuple[Place, Row]]:
        strict = "true" if self.is_strict else "false"
        read = read_of(self.name_server, self.topic.name, "topic stream", failOnDataLoss=strict)
        stream = SparkStream.of_topic(read)
        try:
            # a run that ended before its last batch was stored: the next one plans that first
            for start, end in pairwise(texts):
                for piece in stream.pieces(start, end):
                    yield from rows_of(read, piece)
            text = texts[-1]
            for _ in range(_MOST_BATCHES):
                is_old = way == "old PySpark"
                end = stream.latest(None if is_old else text, is_limited=not is_old)
                for piece in stream.pieces(text, end):
                    yield from rows_of(read, piece)
                if end == text:
                    return
                text = end
            raise SilentLoss(f"{self.where}: no end after {_MOST_BATCHES} batches, at {text}")
        finally:
            stream.close()

    def _refused(self, texts: Sequence[str], error: RmqError) -> Attempt:
        """An error is right where the checkpoint is none, or says what its topic is not."""
        if not isinstance(error, ArgumentError | DataLossError) or not re.search(_WORDS, str(error)):
            raise SilentLoss(f"{self.where}: expected an error that tells of the checkpoint, got {error!r}") from error
        positions = self._positions(texts)
        if positions is not None and self._is_sound(positions):
            raise SilentLoss(f"{self.where}: nothing is wrong, and it is refused: {error}") from error
        if not self.is_strict and isinstance(error, DataLossError):
            raise SilentLoss(f"{self.where}: failOnDataLoss=false, and it is refused: {error}") from error
        return Attempt(self.where, rows=0, missing=0, refused=True)

    def _checked_rows(self, rows: Sequence[tuple[Place, Row]], told: Sequence[str]) -> set[Place]:
        seen: set[Place] = set()
        for place, row in rows:
            if place in seen and not self._own(place[0], told):
                raise SilentLoss(f"{self.where}: the row {place} was returned twice")
            if self.topic.rows.get(place) != row:
                raise SilentLoss(f"{self.where}: the row {place} is {row!r}, expected {self.topic.rows.get(place)!r}")
            seen.add(place)
        return seen

    def _own(self, queue_id: int, told: Sequence[str]) -> list[str]:
        return [line for line in told if re.search(rf"broker {_BROKER}, queue {queue_id}[:,]", line)]

    def _judge_queue(self, queue_id: int, positions: Sequence[_Position], seen: set[Place], told: Sequence[str]) -> int:
        """The number of missing and of reported messages of a queue."""
        first, last = self.topic.bounds[queue_id]
        read = sorted(offset for of, offset in seen if of == queue_id)
        if read != list(range(last - len(read), last)):
            raise SilentLoss(f"{self.where}: queue {queue_id}, {first} to {last}: expected all from one on, got {read}")
        start, own = last - len(read), self._own(queue_id, told)
        offsets = [position.offsets.get((_BROKER, queue_id)) for position in positions]
        place = f"{self.where}: queue {queue_id} at {offsets}, of {first} to {last}, read from {start}"
        # a queue that joined with the batch had nothing to read in it
        if offsets == [None, first] or all(self._is_plausible(queue_id, position) for position in positions):
            # no fact contradicts these offsets: all from there on, and nothing else
            if start != min(offset for offset in offsets if offset is not None):
                raise SilentLoss(f"{place}: expected all from there on: {own}")
            return 0
        if not own and (read or None not in offsets):
            raise SilentLoss(f"{place}: nobody is told: {told}")
        if self.is_strict and None not in offsets:
            raise SilentLoss(f"{place}: expected an error, got {own}")
        if read and start not in offsets and not any(re.search(rf"\b{start}\b", line) for line in own):
            raise SilentLoss(f"{place}: that is not what is told: {own}")
        return start - first

    def _is_sound(self, positions: Sequence[_Position]) -> bool:
        """Whether no fact contradicts any offset."""
        return all(
            self._is_plausible(queue_id, position) for position in positions for queue_id in self.topic.bounds
        ) and not any(self._strangers(position) for position in positions)

    def _goes_back(self, queue_id: int, positions: Sequence[_Position]) -> bool:
        offsets = [position.offsets.get((_BROKER, queue_id)) for position in positions]
        numbers = [offset for offset in offsets if offset is not None]
        return numbers != sorted(numbers)

    def _strangers(self, position: _Position) -> list[tuple[str, int]]:
        return [
            (broker, queue_id)
            for broker, queue_id in position.offsets
            if broker != _BROKER or queue_id not in self.topic.bounds
        ]

    def _is_plausible(self, queue_id: int, position: _Position) -> bool:
        """Whether no fact contradicts an offset: it is in the queue, and its time is that of the message before it."""
        first, last = self.topic.bounds[queue_id]
        at = position.offsets.get((_BROKER, queue_id))
        if at is None or not first <= at <= last:
            return False
        stored = position.stored.get((_BROKER, queue_id))
        return stored is None or at == first or self.topic.rows[queue_id, at - 1][1] == stored


@dataclass(frozen=True)
class _Position:
    """Offsets and times by broker and queue."""

    offsets: dict[tuple[str, int], int]
    stored: dict[tuple[str, int], int]


def _parsed(text: str, topic: str) -> _Position | None:
    """A careful reader's view of a text; None if it is no checkpoint of the topic."""
    try:
        value = json.loads(text)
        (name,) = value
        position = _Position({}, {})
        for broker, queues in value[name].items():
            for queue_id, offset in queues.items():
                if type(offset) is not int or not 0 <= offset < 1 << 63 or not -(1 << 31) <= int(queue_id) < 1 << 31:
                    return None
                if position.offsets.setdefault((broker, int(queue_id)), offset) != offset:
                    return None
            head, mark, times = broker.rpartition(" stored ")
            if mark and not queues:
                position.stored.update(_times_of(head, times))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    return position if name == topic and position.offsets else None


def _times_of(broker: str, text: str) -> dict[tuple[str, int], int]:
    """All times of a member, or none."""
    found = re.fullmatch(r"[+-]?\d+:[+-]?\d+( [+-]?\d+:[+-]?\d+)*", text)
    if found is None:
        return {}
    pairs: list[Any] = [word.split(":") for word in text.split(" ")]
    times = {(broker, int(queue_id)): int(stored) for queue_id, stored in pairs}
    return times if all(-(1 << 63) <= stored < 1 << 63 for stored in times.values()) else {}
