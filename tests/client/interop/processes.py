"""Members in processes of their own, and a producer that goes on sending meanwhile."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import rmqfast
from rmqfast import Message, MessageQueue
from rmqfast.client.producer import Producer, SendResult
from rmqfast.errors import RmqError

ROOT = Path(__file__).parents[3]
Place = tuple[int, int]
MEMBER = "tests.client.interop.member"


def python(module: str, *words: object, **more: Any) -> subprocess.Popen[str]:
    """A module of these tests as a program."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(rmqfast.__file__).parents[1]), str(ROOT)])}
    command = [sys.executable, "-m", module, *map(str, words)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **more)


class MemberProcess:
    """A module of members as a process; it prints `ready`, and ends with its standard input.

    Attributes:
        file: Its notes, which other processes read.
    """

    def __init__(self, module: str, file: Path, *words: object) -> None:
        self.file = file
        self._child = python(module, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_ready(self) -> None:
        """Waits until its consumers have started."""
        assert self._child.stdout is not None
        assert self._child.stdout.readline() == "ready\n"

    def leave(self) -> None:
        """Ends it as one should."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        assert self._child.wait(120) == 0
        self._close()

    def kill(self) -> None:
        """Ends it at once."""
        self._child.kill()
        self._child.wait(30)
        self._close()

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        self._child.send_signal(number)

    def _close(self) -> None:
        for end in (self._child.stdin, self._child.stdout):
            if end is not None:
                with suppress(OSError):
                    end.close()


class Sending:
    """Sends from queue to queue while the block runs, so many messages a second.

    Attributes:
        acknowledged: Queues and offsets of the messages that the broker took, as far as it has said so.
        failures: Why messages could not be sent.
        refused: How others ended that are not stored for sure.
    """

    def __init__(self, producer: Producer, queues: Sequence[MessageQueue], rate: float) -> None:
        self._producer, self._queues, self._rate = producer, queues, rate
        self._sent, self._answered = 0, itertools.count(1)
        self._ended, self._all_answered = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: set[Place] = set()
        self.failures: list[RmqError] = []
        self.refused: list[Exception] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._note(None)
        assert self._all_answered.wait(60)

    def _run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._ended.wait(0.02):
            while number < (time.monotonic() - began) * self._rate:
                queue = self._queues[number % len(self._queues)]
                number += 1
                try:
                    self._producer.send_async(Message(queue.topic, b"%d" % number), self._note, queue)
                    self._sent += 1
                except RmqError as error:
                    self.failures.append(error)

    def _note(self, ended: SendResult | Exception | None) -> None:
        """Takes how a send ended; `None`, once: that there will be no more."""
        if isinstance(ended, SendResult):
            self.acknowledged.add((ended.queue.queue_id, ended.queue_offset))
        elif ended is not None:
            self.refused.append(ended)
        if next(self._answered) > self._sent and self._ended.is_set():
            self._all_answered.set()
