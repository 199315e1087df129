"""Telling a broker at once that it is back, or that its connection is.

A broker that restarts knows nobody; until the next heartbeat, up to 30 s later, it would refuse pulls.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from rmqfast.client.instance.scheduler import Scheduler

FIRST_DELAY = 0.5


class Reconnects:
    """Sends a heartbeat to addresses whose connection ended: soon, then ever later, until one is taken.

    Args:
        scheduler: When.
        send: Sends a heartbeat to an address, and says whether it was taken.
        longest: Seconds after which it is left to the usual heartbeats.
        chance: A number from 0 to 1: clients of one broker do not all come back at the same moment.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        send: Callable[[str], bool],
        longest: float,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._scheduler, self._send, self._longest, self._chance = scheduler, send, longest, chance
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def lost(self, address: str) -> None:
        """The connection to an address ended."""
        with self._lock:
            if address in self._waiting:
                return
            self._waiting.add(address)
        self._later(address, FIRST_DELAY)

    def _later(self, address: str, delay: float) -> None:
        self._scheduler.later(delay * (0.5 + self._chance()), lambda: self._try(address, delay))

    def _try(self, address: str, delay: float) -> None:
        if not self._send(address) and delay * 2 < self._longest:
            self._later(address, delay * 2)
            return
        with self._lock:
            self._waiting.discard(address)
