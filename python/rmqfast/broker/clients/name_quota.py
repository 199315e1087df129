"""How many topics and groups a client may bring into being: they are kept, and saved, for good."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rmqfast.errors import ResponseError
from rmqfast.remoting import Channel, ResponseCode

__all__ = ["NameQuota"]

#: Of the budget of a connection, what all connections of a host have together.
_HOST = 10
#: Hosts that are remembered; those that have their whole budget are forgotten first.
_HOSTS = 10_000


class NameQuota:
    """A budget of new names for each connection, and one for each host; what is spent comes back with time.

    Args:
        burst: Names at once (`newNamesBurst`).
        per_second: Names that come back each second (`newNamesPerSecond`).
        clock: Seconds, from any time on.

    Source: none, RocketMQ makes as many as are asked for.
    """

    def __init__(self, burst: int, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._spent: dict[Channel | str, tuple[float, float]] = {}

    def take(self, channel: Channel, count: int = 1) -> None:
        """Spends so much of the budgets of a connection and of its host.

        Raises:
            ResponseError: 2, where one of them has less; then nothing is spent.
        """
        if count == 0:
            return
        host = channel.remote_address.rpartition(":")[0]
        now = self._clock()
        with self._lock:
            if len(self._spent) > _HOSTS:
                self._forget_unspent(now)
            budgets: list[tuple[Channel | str, str, int]] = [(channel, "connection", 1), (host, "host", _HOST)]
            for key, what, times in budgets:
                if self._spent_by(key, now, times) + count > self._burst * times:
                    limits = f"{self._burst * times} at once and {self._per_second * times} a second"
                    remark = (
                        f"[QUOTA] new topics and groups of a {what}: expected at most {limits}, got {count} more "
                        "(newNamesBurst, newNamesPerSecond)"
                    )
                    raise ResponseError(ResponseCode.SYSTEM_BUSY, remark)
            for key, _, times in budgets:
                self._spent[key] = self._spent_by(key, now, times) + count, now

    def forget(self, channel: Channel) -> None:
        """Forgets a connection that is gone; what it spent stays with its host."""
        with self._lock:
            self._spent.pop(channel, None)

    def _spent_by(self, key: Channel | str, now: float, times: int) -> float:
        spent, at = self._spent.get(key, (0.0, now))
        return max(0.0, spent - (now - at) * self._per_second * times)

    def _forget_unspent(self, now: float) -> None:
        spent = {key: self._spent_by(key, now, _HOST if isinstance(key, str) else 1) for key in self._spent}
        self._spent = {key: (amount, now) for key, amount in spent.items() if amount > 0}
