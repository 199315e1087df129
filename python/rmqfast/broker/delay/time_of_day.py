"""The time of day by which delays go, and which of them end early because it jumped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["TimeOfDay"]

_log = logging.getLogger(__name__)
#: What a clock is off between two looks by being set right slowly, or read late, in milliseconds.
_SLACK = 1_000


def _steady() -> int:
    """Milliseconds since the machine started, its sleep included: nobody sets them."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class TimeOfDay:
    """Tells when the time of day jumped, by a clock that only ever ticks.

    RocketMQ's delays go by the time of day, and so do these: the times to deliver at are stored, and must mean the same
    after a restart. A jump ahead ends the delays of what was stored before it early; that is logged and counted. A
    clock that is set back makes no delay longer than its level.

    Args:
        now: Milliseconds since 1970.
        steady: Milliseconds of the other clock.

    Example:
        >>> ticks = iter([0, 100])
        >>> clock = TimeOfDay(1_000_000, steady=lambda: next(ticks))
        >>> clock.look(1_010_100)
        >>> clock.is_early(deliver_at=1_005_000, delay=5_000, now=1_010_100)
        True

    Source: `ScheduleMessageService.DeliverDelayedMessageTimerTask`, which looks at the time of day alone.
    """

    def __init__(self, now: int, *, steady: Callable[[], int] = _steady) -> None:
        self._steady = steady
        self._ahead = now - steady()
        self._last = now
        self._jump = 0
        self._before = 0

    def look(self, now: int) -> None:
        """Looks at both clocks, and logs a jump of more than a second since the last look."""
        ahead = now - self._steady()
        jump, self._ahead = ahead - self._ahead, ahead
        before, self._last = self._last, now
        if abs(jump) <= _SLACK:
            return
        if jump > 0:
            self._jump, self._before = jump, before
        text = "the time of day jumped by %d ms: delays of messages that were stored before end by the new time"
        _log.warning(text, jump)

    def is_early(self, *, deliver_at: int, delay: int, now: int) -> bool:
        """Whether a message that is due would not be due yet, had the time of day not jumped ahead since it was stored.

        Args:
            deliver_at: When it is to be delivered, in milliseconds since 1970.
            delay: How long it was to wait.
            now: The time of day.
        """
        return self._jump > 0 and deliver_at - delay <= self._before and deliver_at > now - self._jump
