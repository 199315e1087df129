"""A rate limit: a budget of tokens that comes back with time."""

from __future__ import annotations

__all__ = ["TokenBucket"]


class TokenBucket:
    """Takes so many tokens at once, and so many each second from then on; not made for several threads.

    Example:
        >>> bucket = TokenBucket(2, 1.0, now=0.0)
        >>> [bucket.take(1, now=0.0) for _ in range(3)], bucket.take(1, now=1.0), bucket.is_full(now=9.0)
        ([True, True, False], True, True)
    """

    __slots__ = ("_burst", "_per_second", "_tokens", "_updated")

    def __init__(self, burst: float, per_second: float, *, now: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = burst
        self._updated = now

    def has(self, count: float, *, now: float) -> bool:
        """Whether it has so many now."""
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._per_second)
        self._updated = now
        return self._tokens >= count

    def take(self, count: float, *, now: float) -> bool:
        """Takes so many, if it has them; whether it had."""
        is_there = self.has(count, now=now)
        if is_there:
            self._tokens -= count
        return is_there

    def is_full(self, *, now: float) -> bool:
        """Whether nothing is missing."""
        return self.has(self._burst, now=now)
