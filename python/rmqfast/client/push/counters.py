"""Rates of pulling and consuming, for administrators.

Source: RocketMQ's `ConsumerStatsManager`, `StatsItem`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rmqfast.system import monotonic
from rmqfast.threads import new_lock

_STEP = 10
_MINUTE, _HOUR = 60, 3600


class _Step:
    """The counts of ten seconds."""

    __slots__ = ("call_millis", "calls", "failed", "number", "ok", "pull_millis", "pulled", "pulls")

    def __init__(self, number: float) -> None:
        self.number = number
        self.ok = self.failed = self.calls = self.pulled = self.pulls = 0
        self.call_millis = self.pull_millis = 0.0


class Totals(NamedTuple):
    """The counts of a topic since the start.

    Attributes:
        ok: Messages consumed.
        failed: Messages for which the listener failed.
        calls: Calls of the listener, with their time in `call_seconds`.
        pulled: Messages pulled.
        dropped: Messages that the broker sent and the member's own tags do not want.
        pulls: Pulls with messages, with their time in `pull_seconds`.
    """

    ok: int = 0
    failed: int = 0
    calls: int = 0
    call_seconds: float = 0.0
    pulled: int = 0
    dropped: int = 0
    pulls: int = 0
    pull_seconds: float = 0.0


class ConsumeCounters:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, new_lock()
        self._topics: dict[str, deque[_Step]] = {}
        self._totals: dict[str, Totals] = {}

    def on_consume(self, topic: str, *, ok: int, failed: int, seconds: float) -> None:
        with self._lock:
            step = self._step(topic)
            step.ok += ok
            step.failed += failed
            step.calls += 1
            step.call_millis += seconds * 1000
            old = self._totals.get(topic, Totals())
            self._totals[topic] = old._replace(
                ok=old.ok + ok, failed=old.failed + failed, calls=old.calls + 1, call_seconds=old.call_seconds + seconds
            )

    def on_pull(self, topic: str, messages: int, seconds: float, *, dropped: int = 0) -> None:
        with self._lock:
            old = self._totals.get(topic, Totals())
            self._totals[topic] = old._replace(
                pulled=old.pulled + messages,
                dropped=old.dropped + dropped,
                pulls=old.pulls + 1,
                pull_seconds=old.pull_seconds + seconds,
            )
            if not messages:
                return
            step = self._step(topic)
            step.pulled += messages
            step.pulls += 1
            step.pull_millis += seconds * 1000

    def totals(self) -> dict[str, Totals]:
        """Returns the counts since the start, by topic."""
        with self._lock:
            return dict(self._totals)

    def status(self, topic: str) -> dict[str, Any]:
        """Returns the fields of `ConsumeStatus`: rates of the last minute, and failures of the last hour."""
        minute, hour = self._last(topic, _MINUTE), self._last(topic, _HOUR)
        spent = minute if any(step.calls for step in minute) else hour
        return {
            "pullRT": _average([step.pull_millis for step in minute], [step.pulls for step in minute]),
            "pullTPS": sum([step.pulled for step in minute]) / _MINUTE,
            "consumeRT": _average([step.call_millis for step in spent], [step.calls for step in spent]),
            "consumeOKTPS": sum([step.ok for step in minute]) / _MINUTE,
            "consumeFailedTPS": sum([step.failed for step in minute]) / _MINUTE,
            "consumeFailedMsgs": sum([step.failed for step in hour]),
        }

    def _step(self, topic: str) -> _Step:
        number = self._clock() // _STEP
        steps = self._topics.get(topic)
        if steps is None:
            steps = self._topics[topic] = deque(maxlen=_HOUR // _STEP + 1)
        if not steps or steps[-1].number != number:
            steps.append(_Step(number))
        return steps[-1]

    def _last(self, topic: str, seconds: int) -> list[_Step]:
        first = (self._clock() - seconds) // _STEP
        with self._lock:
            return [step for step in self._topics.get(topic, ()) if step.number > first]


def _average(sums: list[float], times: Sequence[int]) -> float:
    return sum(sums) / sum(times) if any(times) else 0.0
