"""The version of topics and of groups, by which a name server and a slave see that something changed.

Source: RocketMQ's `DataVersion`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from rmqfast.store.config.value import ConfigValue

__all__ = ["DataVersion"]


@dataclass(frozen=True, kw_only=True)
class DataVersion(ConfigValue):
    """The time and number of changes.

    Attributes:
        timestamp: Milliseconds since 1970 of the last change.
        counter: Changes so far.

    Example:
        >>> DataVersion(timestamp=5, counter=2).next(1_700_000_000_000).counter
        3
    """

    timestamp: int = 0
    counter: int = 0

    def next(self, now: int) -> Self:
        """The version after a change."""
        return replace(self, timestamp=now, counter=self.counter + 1)
