"""The delay levels of a broker: how long a message of each waits.

Source: `ScheduleMessageService.parseDelayLevel`, `MessageStoreConfig`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rmqfast.errors import ArgumentError

#: A message of level n waits in queue n - 1 of this topic.
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
#: Default of `MessageStoreConfig`.
_DEFAULT = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayLevels(Mapping[int, int]):
    """The delay of each level in milliseconds, beginning with level 1.

    `text` is a `messageDelayLevel`: times with the units s, m, h or d, separated by blanks, level 1 first. Raises
    `ArgumentError` for another text.
    """

    def __init__(self, text: str = _DEFAULT) -> None:
        # As Java splits a text: blanks behind the last time are none of it.
        self._millis = {level: _millis(word) for level, word in enumerate(text.rstrip(" ").split(" "), 1)}

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
