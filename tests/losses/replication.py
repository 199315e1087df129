"""Harms the stream of a master's log, and looks at the copies that follow it."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

from rmqfast import EmbeddedCluster, Message, Mirror, MirrorOptions, Producer, open_store
from rmqfast._native import TopicRead
from rmqfast.errors import MirrorError, UnknownTopicError
from rmqfast.replication import FollowEnd, Following
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.store import COLUMNS, AppendOptions, MessageStore
from rmqfast.store.replica import Replica, TopicReplica
from rmqfast.store.writer import WritableStore
from tests.mirror.copies import log_of
from tests.proxy import Proxy
from tests.waiting import PATIENCE, until

from .attempt import Attempt, SilentLoss, judge
from .log_stream import HarmedLog
from .rows import Row, key_of, rows_of

__all__ = ["Replication"]

FILE = 64 << 10
SIZES = AppendOptions(file_size=FILE, queue_file_size=2000, index_slots=50, index_entries=400)
CONFIG = {
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
        """Ends the master."""
        self._stack.close()

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Follows over some connections that are harmed, then over sound ones, and compares copy and master."""
        kind = chance.random()
        if kind < 0.02:
            return self._mirror(chance, directory)
        return self._read(chance) if kind < 0.25 else self._copy(chance, directory)

    def _copy(self, chance: random.Random, directory: Path) -> Attempt:
        """A copy that follows, as mirrors and slaves have it."""
        topics = chance.choice(((), (), ("orders",), ("bills", "others")))
        copy = _Copy(self._master, directory / "copy", topics)
        for _ in range(chance.randrange(1, 4)):
            copy.follow(chance)
        end = copy.follow_to_the_end()
        return Attempt(copy.harm, *copy.judge(), refused=end is not None)

    def _mirror(self, chance: random.Random, directory: Path) -> Attempt:
        """A mirror, which decides by itself what follows from an end; it waits a second between two connections."""
        copy = _Copy(self._master, directory / "broker-a", ())
        self._master.proxy.passage = copy.passages(chance, chance.randrange(1, 3))
        options = MirrorOptions(if_broken="withdraw")
        with Mirror(directory, name_server=self._cluster.name_server, options=options) as mirror:
            try:
                until(lambda: mirror.wait(0) or mirror.status()[0].position == len(self._master.log))
            except MirrorError:
                copy.position = mirror.status()[0].position
                return Attempt(copy.harm, *copy.judge(), refused=True)
        copy.position = len(self._master.log)
        return Attempt(copy.harm, *copy.judge(), refused=False)

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
