"""A server that is killed while clients send, pull and commit: what was acknowledged is there when it is back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rmqfast.remoting import RequestCode
from rmqfast.remoting.fastjson import decode
from tests.effort import effort
from tests.waiting import PATIENCE, until

from .live_server import LiveServer, Wire, pull_fields, send_fields
from .pulled import body_of, records_of

pytestmark = pytest.mark.slow
KILLS = effort("RMQFAST_KILLS", 10, 20)
QUEUES = 4
#: PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY, PULL_OFFSET_MOVED
SYSTEM_BUSY, NOTHING_THERE = 2, {19, 20, 21}


@dataclass
class Clients:
    """Producers, one for each queue, and who bothers the control plane meanwhile."""

    server: LiveServer
    acknowledged: list[dict[int, bytes]] = field(default_factory=lambda: [{} for _ in range(QUEUES)])
    topics: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    is_over: bool = False

    def run_until(self, more: int, end: Callable[[], object]) -> None:
        """Has the server ended once so many more messages were acknowledged."""
        before = self.count()
        threads = [threading.Thread(target=self._produce, args=(queue_id,)) for queue_id in range(QUEUES)]
        threads += [threading.Thread(target=self._bother), threading.Thread(target=self._consume)]
        for thread in threads:
            thread.start()
        until(lambda: self.count() >= before + more or self.errors)
        end()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def _produce(self, queue_id: int) -> None:
        acknowledged = self.acknowledged[queue_id]
        with suppress(OSError), Wire(self.server.broker) as wire:
            while True:
                body = b"%d %d " % (queue_id, len(acknowledged)) * (1 + len(acknowledged) % 50)
                header, _ = wire.ask(310, send_fields("killed", queue_id), body)
                if header["code"] != 0:
                    self.errors.append(str(header))
                    return
                acknowledged[int(header["extFields"]["queueOffset"])] = body

    def _bother(self) -> None:
        number = 0
        with suppress(OSError), Wire(self.server.broker) as wire:
            while True:
                number += 1
                topic = f"new{number % 200}"
                if wire.ask(310, send_fields(topic), b"x")[0]["code"] == 0:
                    self.topics.add(topic)
                wire.ask(15, {"topic": "killed", "consumerGroup": f"g{number}", "queueId": "0", "commitOffset": "1"})
                wire.ask(34, body=b'{"clientID":"c","consumerDataSet":[],"producerDataSet":[{"groupName":"p"}]}')

    def _consume(self) -> None:
        offset = 0
        with suppress(OSError), Wire(self.server.broker) as wire:
            while True:
                header, _ = wire.ask(11, pull_fields("killed", "g", offset=offset, sys_flag=7))
                if header["code"] == 17:
                    continue  # whoever sends first makes the topic
                offset = int(header["extFields"]["nextBeginOffset"])

    def lost(self) -> list[str]:
        """What was acknowledged and is not where it was said to be."""
        with Wire(self.server.broker) as wire:
            topics = decode(wire.ask(int(RequestCode.GET_ALL_TOPIC_CONFIG))[1])["topicConfigTable"]
            lost = sorted(self.topics - topics.keys())
            for queue_id, acknowledged in enumerate(self.acknowledged):
                stored = _stored(wire, queue_id)
                lost += [f"{queue_id}:{at}" for at, body in acknowledged.items() if stored.get(at) != body]
        return lost

    def twice(self) -> list[str]:
        """What was sent once and is there more often."""
        with Wire(self.server.broker) as wire:
            counts = [Counter(_stored(wire, queue_id).values()) for queue_id in range(QUEUES)]
        return [body.decode() for count in counts for body, times in count.items() if times > 1]


def _stored(wire: Wire, queue_id: int) -> dict[int, bytes]:
    """Bodies of a queue by their offsets."""
    stored: dict[int, bytes] = {}
    offset = 0
    while True:
        header, messages = wire.ask(11, pull_fields("killed", "check", queue_id, offset))
        if header["code"] == SYSTEM_BUSY:
            continue  # a busy machine: no answer yet
        if header["code"] != 0:
            assert header["code"] in NOTHING_THERE, header
            return stored
        stored |= {int.from_bytes(each[20:28], "big"): body_of(each) for each in records_of(messages)}
        offset = int(header["extFields"]["nextBeginOffset"])


def lost_by_kills(directory: Path, kills: int, config: dict[str, str] | None = None) -> list[str]:
    """Kills a server so many times; what it acknowledged and had no more at its next start."""
    lost: list[str] = []
    with LiveServer(directory, config) as server:
        clients = Clients(server)
        for number in range(kills):
            clients.run_until(100 + number % 5 * 100, server.kill9)
            assert clients.errors == []
            server.start()
            lost += clients.lost()
        assert server.defects() == []
        assert server.stop() == 0
    return lost


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    assert lost_by_kills(tmp_path / "server", 2) == []


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_what_was_acknowledged_is_there_after_many_kills(tmp_path: Path, flush: str) -> None:
    """Twenty times with RMQFAST_FULL=1, or as RMQFAST_KILLS says."""
    assert lost_by_kills(tmp_path / "server", KILLS, {"flushDiskType": flush}) == []
