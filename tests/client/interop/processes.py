"""Members in processes of their own, what they noted, and a producer that goes on sending meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import rmqfast
from rmqfast import Message, MessageQueue
from rmqfast.client.producer import Producer, SendResult
from rmqfast.errors import RmqError

ROOT = Path(__file__).parents[3]
Place = tuple[int, int]


def python(module: str, *words: object, **more: Any) -> subprocess.Popen[str]:
    """A module of these tests as a program."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(rmqfast.__file__).parents[1]), str(ROOT)])}
    command = [sys.executable, "-m", module, *map(str, words)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **more)


class MemberProcess:
    """`member.py`, as it runs."""

    def __init__(self, name_server: str, topic: str, file: Path, name: str) -> None:
        self.file, self.pipe = file, subprocess.PIPE
        module = "tests.client.interop.member"
        self.child = python(module, name_server, topic, file, name, stdin=self.pipe, stdout=self.pipe)

    def ready(self) -> None:
        """Waits until its consumers have started."""
        assert self.child.stdout is not None
        assert self.child.stdout.readline() == "ready\n"

    def leave(self) -> None:
        """Ends it as one should."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.close()
        assert self.child.wait(90) == 0
        self.child.stdout.close()

    def kill(self) -> None:
        """Ends it at once."""
        self.child.kill()
        self.child.wait(30)
        for end in (self.child.stdin, self.child.stdout):
            assert end is not None
            end.close()

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        self.child.send_signal(number)


@dataclass(frozen=True)
class Noted:
    """That a member began with a message, or was done with it.

    Attributes:
        group: In which group.
        what: `begin` or `end`.
        place: Queue and offset.
        time: When, in nanoseconds, by a clock of the whole machine.
        member: Who.
    """

    group: str
    what: str
    place: Place
    time: int
    member: str


def noted(files: Sequence[Path]) -> list[Noted]:
    """What members wrote, in the order of time; a last line that was not finished is none."""
    found = []
    for file in files:
        for line in file.read_text().splitlines(keepends=True) if file.exists() else ():
            words = line.split()
            if line.endswith("\n") and len(words) == 5:
                group, what, queue, offset, at = words
                found.append(Noted(group, what, (int(queue), int(offset)), int(at), file.name))
    return sorted(found, key=lambda each: each.time)


class Sending:
    """Sends from queue to queue while the block runs, so many messages a second; `acknowledged` are stored for sure."""

    def __init__(self, producer: Producer, queues: Sequence[MessageQueue], rate: float) -> None:
        self._producer, self._queues, self._rate = producer, queues, rate
        self._futures: list[Future[SendResult]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failures: list[RmqError] = []

    @property
    def acknowledged(self) -> set[Place]:
        """Queues and offsets of the messages that the broker took, as far as it has said so."""
        done = [future for future in self._futures.copy() if future.done() and future.exception() is None]
        return {(result.queue.queue_id, result.queue_offset) for result in (future.result() for future in done)}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for future in self._futures:
            future.exception(60)

    def _run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._ended.wait(0.02):
            while number < (time.monotonic() - began) * self._rate:
                queue = self._queues[number % len(self._queues)]
                number += 1
                try:
                    self._futures.append(self._producer.send_async(Message(queue.topic, b"%d" % number), queue=queue))
                except RmqError as error:
                    self.failures.append(error)
