"""Harms the stream of a master's log, and looks at the copies that follow it."""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rmqfast import EmbeddedCluster, Message, Producer, open_store
from rmqfast._native import TopicRead
from rmqfast.errors import UnknownTopicError
from rmqfast.replication import FollowEnd, Following
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.store import COLUMNS, AppendOptions, MessageStore
from rmqfast.store.replica import Replica, TopicReplica
from rmqfast.store.writer import WritableStore
from tests.disks import ROOMY
from tests.mirror.copies import log_of
from tests.proxy import Passage, Proxy, Stream
from tests.waiting import PATIENCE

from .attempt import Attempt, Row, SilentLoss, judge, key_of, rows_of

_HEAD = struct.Struct(">qi")
_SIZES = (0, 1, -1, 12, 1 << 22, (1 << 22) + 1, 2**31 - 1, -(2**31))
_OFFSETS = (0, 1, -1, 2**62, 2**63 - 1, -(2**63))
_COUNTS = (1, 4, 8, 12, 91, 500, 5000)


class _Frame(NamedTuple):
    """A frame; `size` where that is not the body's."""

    offset: int
    body: bytes
    size: int | None = None

    @property
    def end(self) -> int:
        return self.offset + len(self.body)

    def written(self) -> bytes:
        return _HEAD.pack(self.offset, len(self.body) if self.size is None else self.size) + self.body


class _Hit(NamedTuple):
    """A frame to be harmed at one of its bytes, the next one, and bytes of another log that stand where its own do."""

    chance: random.Random
    frame: _Frame
    at: int
    following: _Frame
    foreign: bytes

    def with_body(self, body: bytes, count: int) -> _Harmed:
        """The frame with another body of the same length, of which so many bytes are altered."""
        whole = body[: len(self.frame.body)].ljust(len(self.frame.body), b"\0")
        place = self.frame.offset + self.at
        return self.with_frame(self.frame._replace(body=whole), Altered(place, min(place + count, self.frame.end)))

    def with_frame(self, frame: _Frame, altered: Altered) -> _Harmed:
        """Another frame, and the next one behind it."""
        return _Harmed([frame.written(), self.following.written()], [altered])

    def record_at(self, place: int) -> Altered:
        """The record of this byte: what comes behind it has other places, and does not prove itself."""
        return Altered(place, place + 1, is_exact=False)


class Altered(NamedTuple):
    """Bytes of a log, from and to, that are others; all of their record behind them is, too, unless this is exact."""

    first: int
    last: int
    is_exact: bool = True


class _Harmed(NamedTuple):
    """The replacement of a frame and the next one.

    Attributes:
        altered: Bytes of the log, from and to, that are others at their place. Their record may prove itself all the
            same, as one whose properties are others does.
        is_end: Whether nothing else comes.
    """

    frames: Sequence[bytes]
    altered: Sequence[Altered]
    is_end: bool = False


def _flip(hit: _Hit) -> _Harmed:
    body = bytearray(hit.frame.body)
    places: list[Altered] = []
    for _ in range(hit.chance.choice((1, 1, 1, 2, 8))):
        at = min(hit.at + hit.chance.randrange(300), len(body) - 1) if places else hit.at
        body[at] ^= 1 << hit.chance.randrange(8)
        places.append(Altered(hit.frame.offset + at, hit.frame.offset + at + 1))
    return _Harmed([hit.frame._replace(body=bytes(body)).written(), hit.following.written()], places)


def _flip_head(hit: _Hit) -> _Harmed:
    frame, bit = bytearray(hit.frame.written()), hit.chance.randrange(96)
    frame[bit // 8] ^= 1 << bit % 8
    return _Harmed([bytes(frame), hit.following.written()], [hit.record_at(hit.frame.end)])


def _overwrite(fill: Callable[[random.Random, int], bytes], hit: _Hit) -> _Harmed:
    count, body = hit.chance.choice(_COUNTS), hit.frame.body
    new = body[: hit.at] + fill(hit.chance, count) + body[hit.at + count :]
    return hit.with_body(new, count)


def _resize(is_longer: bool, is_told: bool, hit: _Hit) -> _Harmed:
    """Bytes dropped or doubled; the size in the head is as much more or less if it is told."""
    body, count = hit.frame.body, hit.chance.choice(_COUNTS)
    body = body[: hit.at + count] + body[hit.at :] if is_longer else body[: hit.at] + body[hit.at + count :]
    frame = hit.frame._replace(body=body, size=None if is_told else len(hit.frame.body))
    return hit.with_frame(frame, hit.record_at(hit.frame.offset + hit.at))


def _swap_bodies(hit: _Hit) -> _Harmed:
    first, second = hit.frame, hit.following
    frames = [first._replace(body=second.body), _Frame(first.offset + len(second.body), first.body)]
    places = (first.offset, first.offset + len(second.body))
    return _Harmed([frame.written() for frame in frames], [hit.record_at(place) for place in places])


def _leave_out(is_hidden: bool, hit: _Hit) -> _Harmed:
    place = hit.frame.offset if is_hidden else hit.following.offset
    return _Harmed([hit.following._replace(offset=place).written()], [hit.record_at(hit.frame.offset)])


def _of_another(hit: _Hit) -> _Harmed:
    hit = hit._replace(at=hit.chance.choice((0, hit.at)))
    # where its records stand at the same places they prove themselves
    return hit.with_body(hit.frame.body[: hit.at] + hit.foreign[hit.at :], len(hit.frame.body))


def _offset(hit: _Hit) -> _Harmed:
    place = hit.frame.offset
    offset = hit.chance.choice((*_OFFSETS, place + 1, place - 1, hit.frame.end, place - hit.at, place // 2))
    return _Harmed([hit.frame._replace(offset=offset).written(), hit.following.written()], [])


def _size(hit: _Hit) -> _Harmed:
    size = len(hit.frame.body)
    size = hit.chance.choice((*_SIZES, size + 1, size - 1, size + 12, 2 * size))
    return hit.with_frame(hit.frame._replace(size=size), hit.record_at(hit.frame.end))


def _shift(hit: _Hit) -> _Harmed:
    """Bytes of the log, from another place of it on."""
    start = hit.chance.randrange(len(hit.frame.body))
    body = (hit.frame.body[: hit.at] + hit.frame.body[start:]).ljust(len(hit.frame.body), b"\0")
    frame = hit.frame._replace(body=body[: len(hit.frame.body)])
    return hit.with_frame(frame, hit.record_at(hit.frame.offset + hit.at))


#: What may be done, by names for people.
HARMS: dict[str, Callable[[_Hit], _Harmed]] = {
    "bits flipped": _flip,
    "a bit of a frame's head flipped": _flip_head,
    "zeroes written": partial(_overwrite, lambda _, count: bytes(count)),
    "garbage written": partial(_overwrite, random.Random.randbytes),
    "bytes dropped": partial(_resize, False, False),
    "bytes dropped, and the size as much less": partial(_resize, False, True),
    "bytes doubled": partial(_resize, True, False),
    "bytes doubled, and the size as much more": partial(_resize, True, True),
    "a frame repeated": lambda hit: _Harmed([hit.frame.written(), hit.frame.written(), hit.following.written()], []),
    "frames swapped": lambda hit: _Harmed([hit.following.written(), hit.frame.written()], []),
    "the bodies of frames swapped": _swap_bodies,
    "a frame left out": partial(_leave_out, False),
    "a frame left out, and the next one in its place": partial(_leave_out, True),
    "cut": lambda hit: _Harmed(
        [hit.frame.written()[: hit.chance.randrange(12 + len(hit.frame.body))]], [], is_end=True
    ),
    "bytes of another master's log": _of_another,
    "another offset": _offset,
    "another size": _size,
    "bytes from elsewhere in the log": _shift,
}


@dataclass
class HarmedLog(Passage):
    """A connection to a master's HA port, harmed once; it ends where the log does.

    Attributes:
        chance: Decides what is done, and where; nothing without.
        end: Where the master's log ends.
        other: The log of another master, which begins at 0.
        harm: What was done, in words; empty where the connection ended before.
        reports: What the follower reported, the request first.
        altered: Bytes of the log, from and to, that may have come otherwise than the master has them.
    """

    chance: random.Random | None
    end: int
    other: bytes = b""
    harm: str = ""
    reports: list[int] = field(default_factory=list)
    altered: list[Altered] = field(default_factory=list)

    def requests(self, stream: Stream) -> Stream:
        """Hands reports on."""
        rest = b""
        for piece in stream:
            rest += piece
            whole = len(rest) // 8 * 8
            self.reports += [report for (report,) in struct.iter_unpack(">q", rest[:whole])]
            rest = rest[whole:]
            yield piece

    def answers(self, stream: Stream) -> Stream:
        """Harms it, and ends where the log does."""
        frames = self._until_end(_frames(stream))
        if self.chance is None:
            return (frame.written() for frame in frames)
        return self._harmed(self.chance, frames)

    def _until_end(self, frames: Iterator[_Frame]) -> Iterator[_Frame]:
        for frame in frames:
            yield frame
            if frame.end >= self.end:
                return

    def _harmed(self, chance: random.Random, frames: Iterator[_Frame]) -> Stream:
        place = -1
        for frame in frames:
            if frame.body and place < 0:
                place = frame.offset + chance.randrange(max(self.end - frame.offset, 1))
            if frame.end <= place or not frame.body:
                yield frame.written()
                continue
            name = chance.choice(list(HARMS))
            self.harm = f"{name} at {place}"
            # behind the last one a master sends keep-alives
            following = next(frames, _Frame(frame.end, b""))
            foreign = self.other[frame.offset : frame.end]
            harmed = HARMS[name](_Hit(chance, frame, place - frame.offset, following, foreign))
            self.altered += harmed.altered
            yield from harmed.frames
            if harmed.is_end:
                return
            yield from (honest.written() for honest in frames)
            return


def _frames(stream: Stream) -> Iterator[_Frame]:
    rest = b""
    for piece in stream:
        rest += piece
        while len(rest) >= _HEAD.size:
            offset, size = _HEAD.unpack_from(rest)
            if len(rest) < _HEAD.size + size:
                break
            yield _Frame(offset, rest[_HEAD.size : _HEAD.size + size])
            rest = rest[_HEAD.size + size :]


FILE = 64 << 10
SIZES = AppendOptions(file_size=FILE, queue_file_size=2000, index_slots=50, index_entries=400)
CONFIG = ROOMY | {
    "mappedFileSizeCommitLog": str(FILE),
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "50",
    "maxIndexNum": "400",
    # frames so small that there are many
    "haTransferBatchSize": "3000",
    "brokerIP1": "127.0.0.2",
}
TOPICS = ("orders", "bills", "others")
#: Columns that a copy of some topics has otherwise, as its log has other places.
PLACES = ("physical_offset", "offset_msg_id")
MAX_RECORD = 1 << 20
#: Where the body of a record begins.
BODY_AT = 88
#: Of two records that differ the first bytes do.
HEAD = 128


class Replication:
    """A master whose log is served over a proxy; each attempt follows it into a copy of its own."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="losses-")))
        self._cluster = self._stack.enter_context(EmbeddedCluster(directory / "master", config=CONFIG))
        broker = self._cluster.brokers[0]
        port, log_port = int(broker.address.rpartition(":")[2]), broker.config.number("haListenPort")
        self._stack.enter_context(Proxy(f"127.0.0.1:{port}", listen=f"127.0.0.2:{port}"))
        proxy = self._stack.enter_context(Proxy(f"127.0.0.1:{log_port}", listen=f"127.0.0.2:{log_port}"))
        _fill(self._cluster.name_server, 400)
        _fill_other(directory / "other")
        self._master = _Master(directory / "master", proxy, directory / "other")

    def close(self) -> None:
        self._stack.close()

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Follows over some connections that are harmed, then over sound ones, and compares copy and master."""
        return self._read(chance) if chance.random() < 0.25 else self._copy(chance, directory)

    def _copy(self, chance: random.Random, directory: Path) -> Attempt:
        """A copy that follows, as mirrors and slaves have it."""
        topics = chance.choice(((), (), ("orders",), ("bills", "others")))
        copy = _Copy(self._master, directory / "copy", topics)
        for _ in range(chance.randrange(1, 4)):
            copy.follow(chance)
        end = copy.follow_to_the_end()
        return Attempt(copy.harm, *copy.judge(), refused=end is not None)

    def _read(self, chance: random.Random) -> Attempt:
        """A read of topics out of the log, as Spark's tasks do it: what the log does not tell is pulled."""
        topics = chance.choice((("orders",), ("bills", "others"), TOPICS))
        copy = _Copy(self._master, Path(), topics)
        options = {"nameServer": self._cluster.name_server, "subscribe": ",".join(topics), "via": "log"}
        read = TopicRead("topic batch", options | {"verifyCrc": "true"}, COLUMNS)
        pieces = read.plan()
        self._master.proxy.passage = copy.passages(chance, chance.randrange(1, 3))
        copy.position = len(self._master.log)
        rows = rows_of(batch for piece in pieces for batch in read_topic_piece(read, piece))
        return Attempt(copy.harm, *copy.judge_rows(None, rows), refused=False)


class _Master:
    """A log, its rows, and where it is served."""

    def __init__(self, store: Path, proxy: Proxy, other: Path) -> None:
        self.proxy, self.address = proxy, proxy.address
        self.log, self.foreign = log_of(store)[1], log_of(other)[1]
        with open_store(store) as opened, open_store(other) as foreign:
            self.rows = rows_of(opened.scan().batches())
            self.foreign_marks = {mark for row in rows_of(foreign.scan().batches()) for mark in _marks(row)}


class _Copy:
    """A copy of a master's log, and what was done to the connections over which it came."""

    def __init__(self, master: _Master, path: Path, topics: Sequence[str]) -> None:
        self._master, self._path, self._topics = master, path, tuple(topics)
        self._passages: list[HarmedLog] = []
        self._is_begun = False
        self.position = 0

    @property
    def harm(self) -> str:
        harms = ", then ".join(passage.harm for passage in self._passages if passage.harm)
        return f"a copy of {', '.join(self._topics) or 'all topics'}; {harms or 'no harm'}"

    def follow(self, chance: random.Random | None, overlap: int = 0) -> tuple[FollowEnd, int]:
        """Follows until the connection ends, and where it began; the connection is harmed by `chance`."""
        passage = self._passage(chance)
        self._master.proxy.passage = lambda _: passage
        counts = chance is not None and chance.random() < 0.5
        with self._opened() as copy:
            start = copy.bounds[1]
            overlap = overlap if chance is None else chance.choice((0, 2000, 64 << 10))
            start = copy.compare_from(start, overlap) if overlap or self._topics else start
            following = Following(copy, self._master.address, start, max_record=MAX_RECORD, counts=counts)
            try:
                end = following.wait(PATIENCE)
                if end is None:
                    raise SilentLoss(f"{self.harm}: nothing ended it, {following.progress()}")
            finally:
                following.stop()
            progress = following.progress()
            self.position = copy.bounds[1]
            self._check(passage, counts=counts)
            if progress.position != self.position or progress.listed_to > progress.position:
                raise SilentLoss(f"{self.harm}: it says {progress}, and ends at {self.position}")
            if not end.text:
                raise SilentLoss(f"{self.harm}: ended without a word, {end}")
        return end, start

    def follow_to_the_end(self) -> FollowEnd | None:
        """Follows over sound connections, and cuts what the master does not have; why it cannot, or None."""
        overlap = 64 << 10
        for _ in range(30):
            end, start = self.follow(None, overlap)
            if end.kind == "closed" and self.position == len(self._master.log):
                return None
            if end.kind != "diverged" or end.offset is None:
                raise SilentLoss(f"{self.harm}: a sound connection ended, {end}, the copy at {self.position}")
            if self._topics:
                # a mirror of some topics begins anew
                return end
            if end.offset < start + HEAD and start > 0:
                overlap *= 16
            else:
                Replica.cut(self._path, end.offset, SIZES)
        raise SilentLoss(f"{self.harm}: the copy differs again and again, it ends at {self.position}")

    def passages(self, chance: random.Random, harmed: int) -> Callable[[int], HarmedLog]:
        """Harms the next connections, so many of them."""

        return lambda _: self._passage(chance if len(self._passages) < harmed else None)

    def judge(self) -> tuple[int, int]:
        """Compares its rows with the master's: how many there are, and how many are missing."""
        with open_store(self._path) as store:
            names = (None, *(self._topics or TOPICS))
            counts = [self.judge_rows(name, _rows(store, name)) for name in names]
        return counts[0]

    def judge_rows(self, topic: str | None, rows: list[Row]) -> tuple[int, int]:
        """Compares rows, of a topic or of all that are copied, with the master's."""
        names = (topic,) if topic else self._topics or TOPICS
        copied = [row for row in self._master.rows if row["topic"] in names]
        own = [row for row in copied if row["physical_offset"] < self.position]
        # no checksum speaks of most of a record's head and of its properties: one that was altered there is any record
        altered = [row for row in own if self._is_altered(row["physical_offset"], row["store_size"])]
        marks = {mark for row in altered for mark in _marks(row)} | self._foreign_marks()
        ignored = {"broker_name", *(PLACES if self._topics else ())}
        truth = {key_of(row): _without(row, ignored) for row in own if row not in altered}
        returned = [(key_of(row), _without(row, ignored)) for row in rows if marks.isdisjoint(_marks(row))]
        count, _ = judge(f"{self.harm}: {topic or 'the log'}", truth, returned, told=lambda _: False)
        # it says how far it is
        return count, len(copied) - len(own)

    def _is_altered(self, place: int, size: int) -> bool:
        first = place + BODY_AT
        body = range(first, first + int.from_bytes(self._master.log[first - 4 : first]) + 1)
        ranges = (one for passage in self._passages for one in passage.altered)
        touching = (one for one in ranges if one.first < place + size and place < one.last)
        # a body has its checksum
        return any(not (one.is_exact and one.first in body and one.last in body) for one in touching)

    def _foreign_marks(self) -> set[object]:
        foreign = any("another master" in passage.harm for passage in self._passages)
        return self._master.foreign_marks if foreign else set()

    def _passage(self, chance: random.Random | None) -> HarmedLog:
        log, foreign = self._master.log, self._master.foreign
        # of its own, as it runs on another thread
        own = None if chance is None else random.Random(chance.random())
        self._passages.append(HarmedLog(own, len(log), foreign))
        return self._passages[-1]

    def _opened(self) -> Replica:
        is_begun, self._is_begun = self._is_begun, True
        if self._topics:
            return TopicReplica(self._path, SIZES, self._topics, begin=None if is_begun else 0)
        return Replica(self._path, SIZES)

    def _check(self, passage: HarmedLog, *, counts: bool) -> None:
        """A slave reports no more than it has, and who is none reports nothing that a send could wait for."""
        reported = max(passage.reports[1:], default=-1)
        if reported > (self.position if counts else -1):
            raise SilentLoss(f"{self.harm}: reported {reported}, and ends at {self.position}")


def _fill(name_server: str, count: int) -> None:
    chance = random.Random("replication")
    with Producer("losses", name_server=name_server) as producer:
        for topic in TOPICS:
            producer.create_topic(topic, 2)
        for number in range(count):
            producer.send(_message(chance, number, "own"))


def _fill_other(path: Path) -> None:
    """Another master's store, whose first file has records of the same lengths."""
    chance = random.Random("replication")
    with WritableStore(path, SIZES) as store:
        for number in range(400):
            store.append(_message(chance, number, "foreign"))


def _message(chance: random.Random, number: int, name: str) -> Message:
    start = f"{name}-{number}-".encode()
    body = start + chance.randbytes(chance.choice((1, 100, 1000)))
    # compressed where a client sends it
    body = body if number % 50 else start * 1000
    return Message(
        TOPICS[number % 7 % 3],
        body,
        tags=("A", "B", None)[number % 3],
        keys=f"{name}-{number}",
        properties={"number": str(number)},
    )


def _without(row: Row, names: Collection[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def _rows(store: MessageStore, topic: str | None) -> list[Row]:
    """The rows of a topic; none where the name of its only message was altered on the way."""
    try:
        return rows_of(store.scan(topic).batches())
    except UnknownTopicError:
        return []


def _marks(row: Row) -> set[object]:
    """A mark that identifies a message even after other changes."""
    return {row["body"], row["keys"]} - {None}
