"""A rate limit by a budget of tokens, which refills over time."""

from __future__ import annotations


class TokenBucket:
    """A budget of `burst` tokens, which refills at a rate per second. Not thread-safe."""

    __slots__ = ("_burst", "_per_second", "_tokens", "_updated")

    def __init__(self, burst: float, per_second: float, *, now: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = burst
        self._updated = now

    def has(self, count: float, *, now: float) -> bool:
        """Whether the bucket has at least `count` tokens."""
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._per_second)
        self._updated = now
        return self._tokens >= count

    def take(self, count: float, *, now: float) -> bool:
        """Takes `count` tokens if there are as many. Returns whether it took them."""
        is_there = self.has(count, now=now)
        if is_there:
            self._tokens -= count
        return is_there

    def is_full(self, *, now: float) -> bool:
        return self.has(self._burst, now=now)
