"""Notices jumps of the time of day, so that they end no delay early.

Source: RocketMQ's `ScheduleMessageService`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rmqfast.logs import logger_of
from rmqfast.system import milliseconds_since_boot

__all__ = ["Jump", "TimeOfDay"]

_log = logger_of(__name__)
#: What a clock is off between two looks by being set right slowly, or read late, in milliseconds.
_SLACK = 1_000


@dataclass(frozen=True, slots=True)
class Jump:
    """A change of the system clock.

    Attributes:
        shift: Milliseconds, less than 0 where it was set back.
        earliest: When that was at the earliest, by the new time.
        noticed: When it was seen, by the new time.
    """

    shift: int
    earliest: int
    noticed: int

    def came_after(self, store_timestamp: int) -> bool:
        """Returns whether a message was stored before the jump."""
        return not self.earliest <= store_timestamp <= self.noticed


class TimeOfDay:
    """Detects jumps of the system clock by a monotonic one.

    RocketMQ's delays go by the time of day, as the times to deliver at are stored, and must mean the same after a
    restart. A process that sees a jump corrects them.

    Example:
        >>> ticks = iter([0, 100])
        >>> clock = TimeOfDay(1_000_000, steady=lambda: next(ticks))
        >>> jump = clock.jump_since_last_call(1_010_100)
        >>> jump.shift, jump.came_after(store_timestamp=1_000_050), jump.came_after(store_timestamp=1_010_050)
        (10000, True, False)
    """

    def __init__(self, now: int, *, steady: Callable[[], int] = milliseconds_since_boot) -> None:
        self._steady = steady
        self._last = steady()
        self._ahead = now - self._last

    def jump_since_last_call(self, now: int) -> Jump | None:
        """Returns and logs a jump of more than a second since the last call; None without one."""
        steady = self._steady()
        passed, self._last = steady - self._last, steady
        shift, self._ahead = now - steady - self._ahead, now - steady
        if abs(shift) <= _SLACK:
            return None
        _log.warning("the time of day jumped by %d ms: messages that were stored before wait as long as before", shift)
        return Jump(shift, now - passed - _SLACK, now)
