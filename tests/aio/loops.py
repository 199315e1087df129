"""What the tests of asyncio clients have: a loop, a look at how long it stood still, a broker that is silent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from rmqfast import EmbeddedCluster
from rmqfast.client.instance import ClientConfig

T = TypeVar("T")
PATIENCE = 60.0
#: How long a loop may stand still, in seconds.
STILL = 0.2


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop of its own; it does not take for ever."""

    async def within() -> T:
        async with asyncio.timeout(PATIENCE):
            return await work

    return asyncio.run(within())


async def until(condition: Callable[[], object], what: Callable[[], object] = str) -> None:
    """Waits until something is so."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE / 2
    while not condition():
        assert loop.time() < end, f"not in time: {what()}"
        await asyncio.sleep(0.01)


def stood_still(work: Callable[[], Coroutine[Any, Any, float]]) -> float:
    """How long a loop stood still, in seconds; what another process takes away passes, what blocks the loop stays."""
    times: list[float] = []
    while not times or (times[-1] > STILL and len(times) < 4):
        times.append(run(work()))
    return min(times)


class Ticker:
    """Notes how long the loop stood still at most.

    Attributes:
        longest: That, in seconds.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    @contextlib.asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Looks while the block runs."""
        task = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            task.cancel()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        while True:
            await asyncio.sleep(0.01)
            now = loop.time()
            self.longest, before = max(self.longest, now - before), now


class Gate:
    """Stands before a broker, and holds its answers back while it is shut."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._open = threading.Event()
        self._open.set()
        self._sockets = [self._listening]
        self._start(self._accept)

    def shut(self) -> None:
        """No answer gets through."""
        self._open.clear()

    def open(self) -> None:
        """What was held back, and what comes, gets through."""
        self._open.set()

    def close(self) -> None:
        """Ends all connections."""
        self.open()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _ = self._listening.accept()
                beyond = socket.create_connection(self._target)
                self._sockets += [taken, beyond]
                self._start(self._copy, taken, beyond, is_answer=False)
                self._start(self._copy, beyond, taken, is_answer=True)

    def _copy(self, source: socket.socket, target: socket.socket, *, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer:
                    self._open.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _start(work: Callable[..., None], *args: Any, **named: Any) -> None:
        threading.Thread(target=work, args=args, kwargs=named, daemon=True).start()


@contextlib.contextmanager
def gated(cluster: EmbeddedCluster) -> Iterator[tuple[Gate, ClientConfig]]:
    """A gate before a cluster's broker, and how clients go through it."""
    gate = Gate(cluster.brokers[0].address)
    try:
        yield gate, ClientConfig(name_server=cluster.name_server, translate_address=lambda _: gate.address)
    finally:
        gate.close()
