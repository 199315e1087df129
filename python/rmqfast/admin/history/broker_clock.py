"""The clock of a broker, as far as its answers tell it."""

from __future__ import annotations

from rmqfast.system import monotonic

#: Part of a second by which two clocks may drift apart in a second.
_DRIFT = 0.0002


class BrokerClock:
    """Bounds between which a broker's clock is: each answer narrows them.

    A broker tells its time in whole seconds, at some moment between the question and the answer.
    """

    def __init__(self) -> None:
        #: Milliseconds by which the broker's clock is at least, and at most, ahead of the monotonic clock.
        self._bounds: tuple[float, float] | None = None
        self._noted_at = 0.0

    def note(self, second: int, asked: float, answered: float) -> bool:
        """Notes that the broker's clock was in the second that begins at `second` milliseconds since 1970.

        Returns whether that agrees with what is known. If not, one of the clocks was set, and the bounds begin anew.
        """
        low, high = second - answered * 1000, second + 1000 - asked * 1000
        before, self._noted_at, drift = self._bounds, answered, (answered - self._noted_at) * 1000 * _DRIFT
        self._bounds = low, high
        if before is None:
            return True
        both = max(low, before[0] - drift), min(high, before[1] + drift)
        if both[0] > both[1]:
            return False
        self._bounds = both
        return True

    def earliest(self, moment: float) -> int:
        """Returns the earliest time of the broker's clock, in milliseconds, at a moment of the monotonic clock."""
        return int(moment * 1000 + self._known[0])

    def latest(self, moment: float) -> int:
        """Returns the latest time of the broker's clock, in milliseconds, at a moment of the monotonic clock."""
        return int(moment * 1000 + self._known[1]) + 1

    @property
    def _known(self) -> tuple[float, float]:
        if self._bounds is None:
            raise LookupError(f"a broker's clock is not known at {monotonic():.3f}")
        return self._bounds
