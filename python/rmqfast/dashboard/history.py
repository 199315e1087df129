"""The last values of a cluster's figures, for charts."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

from rmqfast.threads import new_lock

#: Looks that are remembered: ten minutes, with one every five seconds.
LENGTH = 120


class History:
    """Remembers the figures of the last looks. A figure that a look lacks is unknown then. Thread-safe."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._times: array[float] = array("d")
        self._figures: dict[str, array[float]] = {}

    def note(self, time: float, figures: Mapping[str, float | None]) -> None:
        """Adds a look. Forgets figures that it lacks, as those of a group that was deleted."""
        with self._lock:
            known = len(self._times)
            for name in self._figures.keys() - figures.keys():
                del self._figures[name]
            for name, value in figures.items():
                values = self._figures.setdefault(name, array("d", [math.nan] * known))
                values.append(math.nan if value is None else value)
                del values[:-LENGTH]
            self._times.append(time)
            del self._times[:-LENGTH]

    def of(self, *names: str) -> tuple[Sequence[float], dict[str, list[float | None]]]:
        """Returns the times of the looks, in seconds since 1970, and the values of some figures."""
        with self._lock:
            times = list(self._times)
            found = {name: list(self._figures.get(name, [math.nan] * len(times))) for name in names}
        return times, {
            name: [None if math.isnan(value) else value for value in values] for name, values in found.items()
        }
