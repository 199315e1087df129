"""Sends and pulls on two masters of RocketMQ, each with a mirror, for long: memory, lags, gaps.

python -m tests.mirror.hour MINUTES [MESSAGES_A_SECOND [VERSION]]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageView,
    Producer,
    PushConsumer,
    SendStatus,
    open_store,
)
from rmqfast.client.push import ConsumeConcurrentlyContext
from tests.interop.rocketmq import RocketMQ
from tests.mirror.copies import assert_same
from tests.waiting import until

TOPIC = "orders"
CONFIG = ("mappedFileSizeCommitLog=67108864", "osPageCacheBusyTimeOutMills=60000", "brokerFastFailureEnable=false")
BODY = b" " * 300


@dataclass
class Load:
    """A producer and a consumer; each message has its number.

    Attributes:
        sent: How many were acknowledged.
        unacknowledged: Numbers that were not.
    """

    name_server: str
    rate: int
    sent: int = 0
    unacknowledged: set[int] = field(default_factory=set)
    is_over: threading.Event = field(default_factory=threading.Event)
    _seen: bytearray = field(default_factory=bytearray)
    _next: int = 0

    def produce(self) -> None:
        """Until it is over."""
        begin = time.monotonic()
        with Producer("hour", name_server=self.name_server) as producer:
            while not self.is_over.is_set():
                number, self._next = self._next, self._next + 1
                time.sleep(max(begin + number / self.rate - time.monotonic(), 0.0))  # noqa: TID251 - the pace
                status = producer.send(Message(TOPIC, b"%d" % number + BODY)).status
                if status is SendStatus.SEND_OK:
                    self.sent += 1
                else:
                    self.unacknowledged.add(number)

    def listen(
        self, messages: tuple[MessageView, ...], _context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        """Notes what was consumed."""
        for message in messages:
            number = int(message.body.strip())
            if number >= len(self._seen):
                self._seen.extend(bytes(number + 100_000 - len(self._seen)))
            self._seen[number] = 1
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    @property
    def missing(self) -> int:
        """How many were sent and not consumed."""
        return self._next - len(self.unacknowledged) - sum(self._seen)


@contextmanager
def mirrors(name_server: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`rmqfast mirror` of all brokers; its lines go to a file."""
    command = [sys.executable, "-m", "rmqfast", "mirror", "-n", name_server, str(directory), "--all-brokers"]
    directory.mkdir()
    with (directory / "lines").open("wb") as lines:
        process = subprocess.Popen([*command, "-o", "jsonl"], stdout=lines)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def told(line: str) -> None:
    """Writes a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def resident(pid: int) -> int:
    """Its own memory, in MiB: not the pages of files."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("RssAnon"))


def positions(directory: Path) -> list[tuple[int, int]]:
    """Where each mirror's copy ends, and how many bytes it was behind, as its last line says."""
    latest: dict[str, tuple[int, int]] = {}
    for line in (directory / "lines").read_bytes().splitlines()[-8:]:
        if line.endswith(b"}"):
            row = json.loads(line)
            latest[row["broker_name"]] = row["position"], row["lag_bytes"]
    return [latest[name] for name in sorted(latest)]


def end_of(store: Path) -> int:
    """Where a broker's log ends."""
    with open_store(store) as opened:
        return opened.info().max_offset


def run(minutes: float, rate: int, version: str, directory: Path) -> bool:
    """Prints a line each minute; whether all is as it should be."""
    with (
        RocketMQ(version, directory / "a", *CONFIG, clean=False) as one,
        RocketMQ(version, directory / "b", *CONFIG, clean=False, beside=one) as other,
    ):
        for broker in (one, other):
            broker.create_topic(TOPIC, 4)
        load = Load(one.name_server, rate)
        consumer = PushConsumer(
            "hour", name_server=one.name_server, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(load.listen)
        copies = directory / "copies"
        with consumer, mirrors(one.name_server, copies) as process:
            thread = threading.Thread(target=load.produce)
            thread.start()
            end = time.monotonic() + minutes * 60
            while time.monotonic() < end:
                time.sleep(min(60.0, max(end - time.monotonic(), 0.0)))  # noqa: TID251 - an hour is the point
                behind = [lag for _, lag in positions(copies)]
                told(f"{load.sent} sent, mirrors {resident(process.pid)} MiB, behind {behind} bytes")
            load.is_over.set()
            thread.join()
            until(lambda: load.missing == 0, lambda: f"{load.missing} not consumed")
            ends = [end_of(broker.store) for broker in (one, other)]
            until(
                lambda: all(position >= end for (position, _), end in zip(positions(copies), ends, strict=True)),
                lambda: f"{ends} {positions(copies)}",
            )
        for broker, name in ((one, "broker-a"), (other, "broker-b")):
            assert_same(broker.store, copies / name)
        stored = 0
        for name in ("broker-a", "broker-b"):
            with open_store(copies / name) as store:
                assert store.verify().ok
                stored += store.scan(TOPIC, columns=["queue_id"]).to_arrow().num_rows
    told(f"{load.sent} sent, {len(load.unacknowledged)} without an answer, {stored} in the copies")
    return stored >= load.sent


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="hour-") as scratch:
        arguments = sys.argv[1:]
        is_good = run(
            float(arguments[0]),
            int(arguments[1]) if len(arguments) > 1 else 1000,
            arguments[2] if len(arguments) > 2 else "4.9.4",
            Path(scratch),
        )
    sys.exit(not is_good)
