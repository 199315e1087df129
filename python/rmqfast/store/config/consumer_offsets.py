"""`config/consumerOffset.json`: the offset at which each group continues in each queue.

Source: RocketMQ's `ConsumerOffsetManager`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from rmqfast.errors import ArgumentError
from rmqfast.store.config.file import ConfigFile, by_number

SEPARATOR = "@"
PARTS = 2


class ConsumerOffsetTable(ConfigFile, Mapping[tuple[str, str], Mapping[int, int]]):
    """The offsets at which groups continue, by topic and group, and then by queue.

    Keys of the file that are not `topic@group` are hidden here, but written back.

    Example:
        >>> table = ConsumerOffsetTable.load(getfixture("golden_store")("offsets-4.9.4"))
        >>> dict(table["fx_plain", "fx_collide"])
        {0: 0, 1: 10, 2: 3, 3: 4}
        >>> table.commit("fx_plain", "fx_collide", 0, 15)
        >>> table.offset("fx_plain", "fx_collide", 0)
        15
    """

    FILE_NAME: ClassVar[str] = "consumerOffset.json"
    MEMBER: ClassVar[str] = "offsetTable"

    def __init__(self) -> None:
        self._table: dict[str, dict[int, int]] = {}
        self.other: dict[str, Any] = {}

    def take(self, members: dict[str, Any]) -> None:
        self._table = {key: by_number(queues) for key, queues in members.pop(self.MEMBER, {}).items()}

    def offset(self, topic: str, group: str, queue_id: int) -> int | None:
        """Returns the offset at which the group continues. None if it has no offset."""
        return self._table.get(topic + SEPARATOR + group, {}).get(queue_id)

    def commit(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        """Sets the offset at which the group continues. It may be lower than before.

        Raises:
            ArgumentError: The topic or group is empty or contains `@`, the separator of the file's keys.
        """
        key = topic + SEPARATOR + group
        # an "@" in a name would make the key ambiguous
        if parse_key(key) is None:
            raise ArgumentError(f"topic, group: expected names without {SEPARATOR!r}, got {topic!r}, {group!r}")
        self._table.setdefault(key, {})[queue_id] = offset

    def remove_group(self, group: str) -> None:
        """Removes the offsets of a group in all topics."""
        for topic, owner in list(self):
            if owner == group:
                del self._table[topic + SEPARATOR + group]

    def to_json(self) -> dict[str, Any]:
        return {self.MEMBER: {key: dict(sorted(queues.items())) for key, queues in self._table.items()}}

    def __getitem__(self, key: tuple[str, str]) -> Mapping[int, int]:
        text = SEPARATOR.join(key)
        if parse_key(text) != key:
            raise KeyError(key)
        # read-only: `commit` is the way to change offsets
        return MappingProxyType(self._table[text])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return (key for key in map(parse_key, self._table) if key is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"ConsumerOffsetTable({len(self)} topics of groups)"


def parse_key(key: str) -> tuple[str, str] | None:
    parts = key.split(SEPARATOR)
    return (parts[0], parts[1]) if len(parts) == PARTS and all(parts) else None
