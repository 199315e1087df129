"""`config/delayOffset.json`: for each delay level, the offset of the next message to deliver.

Source: RocketMQ's `ScheduleMessageService`, `DelayOffsetSerializeWrapper`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rmqfast.store.config.file import ConfigFile, by_number


class DelayOffsetTable(ConfigFile, Mapping[int, int]):
    """For each delay level, the offset of the next message to deliver. Level n is queue n - 1 of the schedule topic."""

    FILE_NAME: ClassVar[str] = "delayOffset.json"
    MEMBER: ClassVar[str] = "offsetTable"

    def __init__(self) -> None:
        self._table: dict[int, int] = {}
        self.other: dict[str, Any] = {}

    def take(self, members: dict[str, Any]) -> None:
        self._table = by_number(members.pop(self.MEMBER, {}))

    def commit(self, level: int, offset: int) -> None:
        """Sets the offset of the next message to deliver of a level."""
        self._table[level] = offset

    def to_json(self) -> dict[str, Any]:
        return {self.MEMBER: dict(sorted(self._table.items()))}

    def __getitem__(self, level: int) -> int:
        return self._table[level]

    def __iter__(self) -> Iterator[int]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"DelayOffsetTable({self._table})"
