"""The version of topics and groups. Name servers and slaves detect changes by it.

Source: RocketMQ's `DataVersion`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from rmqfast.store.config.value import ConfigValue


@dataclass(frozen=True, kw_only=True)
class DataVersion(ConfigValue):
    """The number of changes, and the time of the last change.

    Attributes:
        timestamp: Milliseconds since 1970 of the last change.
        counter: Number of changes so far.
    """

    timestamp: int = 0
    counter: int = 0

    def next(self, now: int) -> Self:
        """Returns the version after one more change at `now`, in milliseconds since 1970."""
        return replace(self, timestamp=now, counter=self.counter + 1)
