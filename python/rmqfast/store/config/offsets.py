"""The offsets of groups and of delay levels: `consumerOffset.json` and `delayOffset.json`.

Source: RocketMQ's `ConsumerOffsetManager`, `ScheduleMessageService`, `DelayOffsetSerializeWrapper`, `ConfigManager`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from rmqfast.errors import ArgumentError, StoreError
from rmqfast.paths import exists, list_directory, local_path
from rmqfast.store.config.file import ConfigFile, by_number
from rmqfast.store.config.groups import SubscriptionGroupTable, built_in_groups

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


RETRY_PREFIX = "%RETRY%"
SYSTEM_PREFIX = "CID_RMQ_SYS_"
MOST_NAMED = 10


def warning_of_lost_offsets(root: str | os.PathLike[str], *, is_kept: bool | None = None) -> str | None:
    """Returns a warning for a store with messages and groups but without offsets. None for any other store.

    A broker writes the file at its first save even without offsets. If the file is missing, somebody removed it or the
    broker was killed in its first seconds.
    """
    store = local_path(root, "root")
    path = store / "config" / ConsumerOffsetTable.FILE_NAME
    queues = store / "consumequeue"
    # rmqfast's broker keeps its offsets in metadata.db
    if exists(path.with_name("metadata.db")) if is_kept is None else is_kept:
        return None
    if exists(path) or exists(path.with_name(f"{path.name}.bak")):
        return None
    topics = [entry.name for entry in list_directory(queues)]
    # a retry topic proves that its group has consumed
    groups = _user_groups(root) | {name.removeprefix(RETRY_PREFIX) for name in topics if name.startswith(RETRY_PREFIX)}
    if not topics or not groups:
        return None
    names = ", ".join(sorted(groups)[:MOST_NAMED]) + (
        f" and {len(groups) - MOST_NAMED} more" if len(groups) > MOST_NAMED else ""
    )
    return (
        f"{path}: missing, and so is its .bak, but the store has messages and groups ({names}): each begins as a new "
        "group, and gets messages once more or misses some; put the file of a backup in its place before a broker "
        "starts, or set offsets with `rmqfast group reset`"
    )


def _user_groups(root: str | os.PathLike[str]) -> set[str]:
    try:
        names = set(SubscriptionGroupTable.load(root))
    except StoreError:
        return set()
    # RocketMQ's own groups may have no offsets
    own = {group.group_name for group in built_in_groups()}
    return {name for name in names - own if not name.startswith(SYSTEM_PREFIX)}
