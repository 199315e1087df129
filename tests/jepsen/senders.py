"""Senders that go on while things fail, and remember what was acknowledged."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from rmqfast import Message, MessageQueue, Producer
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import SendStatus
from rmqfast.errors import RmqError

from .history import TOPIC, Place

#: Seconds between two messages of a sender.
_PAUSE = 0.01


class Senders:
    """Threads that send one message after the other while the block runs, each to queues of its own.

    Attributes:
        acknowledged: Where the broker said that each message stands.
        unknown: Messages whose send failed.
    """

    def __init__(self, config: ClientConfig, queues: int, count: int) -> None:
        self._producer = Producer("jepsen", config=config)
        self._queues, self._count = queues, count
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(count)]
        self.acknowledged: dict[str, Place] = {}
        self.unknown: set[str] = set()
        self.statuses: set[SendStatus] = set()

    def __enter__(self) -> Self:
        self._producer.start()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._producer.shutdown()

    def end(self) -> None:
        """Sends no more."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _send(self, sender: int) -> None:
        own = range(sender, self._queues, self._count)
        number = 0
        while not self._ending.wait(_PAUSE):
            number += 1
            body, queue = f"{sender}-{number}", MessageQueue(TOPIC, "broker-a", own[number % len(own)])
            # before it is sent: it may be consumed before the answer comes
            self.unknown.add(body)
            try:
                result = self._producer.send(Message(TOPIC, body.encode()), queue)
            except RmqError:
                continue
            # whatever the status says of the disk, it is stored
            self.statuses.add(result.status)
            self.acknowledged[body] = (result.queue.queue_id, result.queue_offset)
            self.unknown.discard(body)
