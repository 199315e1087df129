"""Parses `messageDelayLevel`: how long each delay level waits.

Source: RocketMQ's `ScheduleMessageService`, `MessageStoreConfig`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rmqfast.errors import ArgumentError

__all__ = ["DEFAULT_DELAY_LEVELS", "DelayLevels"]

#: Those of `MessageStoreConfig`; a message of level n waits in queue n - 1 of SCHEDULE_TOPIC_XXXX.
DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayLevels(Mapping[int, int]):
    """Milliseconds by level, from 1.

    Args:
        text: Times with units s, m, h, d and blanks between, the first is level 1 (`messageDelayLevel`).

    Raises:
        ArgumentError: Something else.

    Example:
        >>> levels = DelayLevels("1s 5m 2h")
        >>> levels[2], len(levels)
        (300000, 3)
    """

    def __init__(self, text: str = DEFAULT_DELAY_LEVELS) -> None:
        self._millis = {level: _millis(word) for level, word in enumerate(text.split(" "), 1)}

    def __getitem__(self, level: int) -> int:
        return self._millis[level]

    def __iter__(self) -> Iterator[int]:
        return iter(self._millis)

    def __len__(self) -> int:
        return len(self._millis)


def _millis(word: str) -> int:
    number, unit = word[:-1], word[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS and len(number) < 10):
        raise ArgumentError(f"messageDelayLevel: expected times as '1s 5m 2h', got {word!r}")
    return int(number) * _UNITS[unit]
