"""The tables of topics and of groups. Each table has a version, which each change increments.

Source: RocketMQ's `DataVersion`, `TopicConfigManager`, `SubscriptionGroupManager`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from rmqfast.store.config.file import ConfigFile, StorePath, checked_name
from rmqfast.store.config.value import ConfigValue, java_name, with_names


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


Entry = TypeVar("Entry", bound=ConfigValue)


class VersionedTable(ConfigFile, Mapping[str, Entry], Generic[Entry]):
    """Base class of the tables of topics and groups: names and entries, and a version that each change increments.

    Attributes:
        NAME: The field of an entry that holds its name.
        data_version: The version.
    """

    NAME: ClassVar[str]

    def __init__(self, entries: Iterable[Entry] = (), data_version: DataVersion | None = None) -> None:
        self._table = {self._name(entry): entry for entry in entries}
        self.data_version: DataVersion = data_version or DataVersion()
        self.other: dict[str, Any] = {}

    @classmethod
    def load(cls, root: StorePath, built_in: Iterable[Entry] = ()) -> Self:
        """Reads the file of the store below `root`. Its entries replace built-in entries of the same name.

        Raises:
            CorruptError: The file exists, but neither it nor its `.bak` can be read.
        """
        table = super().load(root)
        table.add_built_in(built_in)
        return table

    def add_built_in(self, entries: Iterable[Entry]) -> None:
        # entries of the file take precedence
        self._table = {self._name(entry): entry for entry in entries} | self._table

    def put(self, entry: Entry, *, now: int) -> None:
        """Adds an entry. It replaces the entry of the same name.

        Raises:
            ArgumentError: RocketMQ does not allow the name.
        """
        self._table[checked_name(self.NAME, self._name(entry))] = entry
        self.data_version = self.data_version.next(now)

    def remove(self, name: str, *, now: int) -> None:
        if self._table.pop(name, None) is not None:
            self.data_version = self.data_version.next(now)

    def take(self, members: dict[str, Any]) -> None:
        self.data_version = DataVersion.from_json(members.pop("dataVersion", None) or {})
        own = java_name(self.NAME)
        for name, fields in members.pop(self.MEMBER, {}).items():
            # an entry may lack its own name, which is the key
            self._table[name] = self.entry(with_names(fields, **{own: name}))

    @abstractmethod
    def entry(self, members: Mapping[str, Any]) -> Entry: ...

    def to_json(self) -> dict[str, Any]:
        table = {name: entry.to_json() for name, entry in self._table.items()}
        return {"dataVersion": self.data_version.to_json(), self.MEMBER: table}

    def _name(self, entry: Entry) -> str:
        return str(getattr(entry, self.NAME))

    def __getitem__(self, name: str) -> Entry:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} entries, {self.data_version})"
