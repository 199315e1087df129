"""Rate limits: a budget of tokens that refills over time, and log lines that clients can cause."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from rmqfast.logs import logger_of
from rmqfast.system import monotonic
from rmqfast.threads import new_lock, run_later


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
        """Takes `count` tokens if the bucket has them. Returns whether it took them."""
        is_there = self.has(count, now=now)
        if is_there:
            self._tokens -= count
        return is_there

    def is_full(self, *, now: float) -> bool:
        return self.has(self._burst, now=now)


#: Lines of one message text that pass at once, and seconds until another one passes.
_BURST, _INTERVAL = 20, 1.0


def limited(logger: logging.Logger) -> logging.Logger:
    """Limits a logger to 20 lines per message text, then to one line per second. Returns the logger."""
    if not any(isinstance(each, LogLimit) for each in logger.filters):
        logger.addFilter(LogLimit())
    return logger


@dataclass(slots=True)
class _Text:
    """A message text without its arguments: how many lines it may still log, and how many were left out."""

    budget: TokenBucket
    left_out: int = 0


class LogLimit(logging.Filter):
    """A log filter that drops frequent lines. The next line that passes contains their number.

    If no further line passes, a separate line reports the number some seconds later.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        later: Callable[[float, Callable[[], object]], object] | None = None,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._later = later or run_later
        self._lock = new_lock()
        self._texts: dict[tuple[str, object], _Text] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.CRITICAL or getattr(record, "is_count", False):
            return True
        # Keyed by the text without arguments: clients control the arguments, but not the text.
        now, key = self._clock(), (record.name, record.msg)
        with self._lock:
            text = self._texts.setdefault(key, _Text(TokenBucket(_BURST, 1 / _INTERVAL, now=now)))
            if not text.budget.take(1, now=now):
                text.left_out += 1
                # Only the first suppressed line schedules the report.
                if text.left_out == 1:
                    self._later(10 * _INTERVAL, lambda: self._log_left_out(key, record.levelno))
                return False
            left_out, text.left_out = text.left_out, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} like it were left out)", None
        return True

    def _log_left_out(self, key: tuple[str, object], level: int) -> None:
        with self._lock:
            text = self._texts[key]
            left_out, text.left_out = text.left_out, 0
        if left_out:
            name, message = key
            logger_of(name).log(
                level, "%d lines were left out like this one: %s", left_out, message, extra={"is_count": True}
            )
