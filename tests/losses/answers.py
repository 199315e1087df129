"""Harms answers of brokers and name servers, and reads topics as Spark's drivers and tasks do."""

from __future__ import annotations

import logging
import random
import re
import resource
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rmqfast import EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast._native import TopicRead, read_piece
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import RmqError
from rmqfast.spark.live.task import read_topic_piece
from rmqfast.store import COLUMNS
from tests.proxy import Proxy
from tests.waiting import PATIENCE

from .answer_stream import Answers, HarmedAnswers
from .attempt import Attempt, SilentLoss, judge
from .rows import Key, Row, key_of, rows_of

__all__ = ["BrokerAnswers"]

CONFIG = {
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
        """Ends the cluster."""
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
        with _told(self._lines):
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


@contextmanager
def _told(lines: list[str]) -> Iterator[None]:
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("rmqfast.client.ranges", "rmqfast.spark")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True


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
