"""Which brokers were slow of late.

Source: `LatencyFaultToleranceImpl`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from rmqfast.client.producer.publish_queues import ThreadLocalIndex


@dataclass(slots=True)
class FaultItem:
    """What is known of a broker.

    Attributes:
        name: The broker.
        latency: How long its last answer took, in milliseconds.
        start: From when on it is to be used, in milliseconds.
    """

    name: str
    latency: int
    start: int

    def is_available(self, now: int) -> bool:
        """Whether it may be used."""
        return now >= self.start

    def order(self, now: int) -> tuple[bool, int, int]:
        """The better, the smaller."""
        return not self.is_available(now), self.latency, self.start


class LatencyFaultTolerance:
    """Brokers that are left alone for a while, by name.

    Args:
        clock: Milliseconds.

    Source: `LatencyFaultToleranceImpl`.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._items: dict[str, FaultItem] = {}
        self._which = ThreadLocalIndex()
        self._lock = threading.Lock()

    def update(self, name: str, latency: int, not_available: int) -> None:
        """Takes how long an answer took.

        Args:
            name: The broker.
            latency: How long it took, in milliseconds.
            not_available: How long to leave it alone, in milliseconds.
        """
        with self._lock:
            self._items[name] = FaultItem(name, latency, self._clock() + not_available)

    def is_available(self, name: str) -> bool:
        """Whether a broker may be used; one of which nothing is known may."""
        item = self._items.get(name)
        return item is None or item.is_available(self._clock())

    def remove(self, name: str) -> None:
        """Forgets a broker."""
        with self._lock:
            self._items.pop(name, None)

    def pick_one_at_least(self) -> str | None:
        """One of the better half of the brokers of which something is known; `None` where there are none.

        Source: `LatencyFaultToleranceImpl.pickOneAtLeast`.
        """
        with self._lock:
            items = list(self._items.values())
        if not items:
            return None
        random.shuffle(items)
        now = self._clock()
        items.sort(key=lambda item: item.order(now))
        half = len(items) // 2
        return items[0 if half <= 0 else self._which.increment() % half].name
