"""`config/subscriptionGroup.json`: the consumer groups of a broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from rmqfast.store.config.data_version import DataVersion
from rmqfast.store.config.file import ConfigFile, StorePath, checked_name
from rmqfast.store.config.value import ConfigValue, named

__all__ = ["SubscriptionGroupConfig", "SubscriptionGroupTable", "built_in_groups"]

BUILT_IN = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)


@dataclass(frozen=True, kw_only=True)
class SubscriptionGroupConfig(ConfigValue):
    """A consumer group as its broker has it.

    Attributes:
        group_name: Its name.
        consume_enable: Whether it may consume.
        consume_from_min_enable: Whether it may consume from the first message on.
        consume_broadcast_enable: Whether each of its consumers may get every message.
        notify_consumer_ids_changed_enable: Whether its consumers are told of each other.
        retry_queue_nums: Queues of its topic `%RETRY%group`.
        retry_max_times: How often a message is tried again before it goes to `%DLQ%group`.
        broker_id: From which broker it consumes; 0 is the master.
        which_broker_when_consume_slowly: From which one if it lags.

    Source: `SubscriptionGroupConfig`.
    """

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    notify_consumer_ids_changed_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1


class SubscriptionGroupTable(ConfigFile, Mapping[str, SubscriptionGroupConfig]):
    """The groups by name, and their version; each change is a new version.

    Example:
        >>> table = SubscriptionGroupTable.load(getfixture("golden_store")("offsets-4.9.4"))
        >>> table["fx_pull"].retry_max_times
        16

    Source: `SubscriptionGroupManager`.
    """

    FILE_NAME: ClassVar[str] = "subscriptionGroup.json"

    def __init__(self, groups: Iterable[SubscriptionGroupConfig] = (), data_version: DataVersion | None = None) -> None:
        self._table = {config.group_name: config for config in groups}
        self.data_version = data_version or DataVersion()
        self.other = {}

    @classmethod
    def load(cls, root: StorePath, built_in: Iterable[SubscriptionGroupConfig] = ()) -> Self:
        """Reads the groups of the store below `root`; those of the file take the place of built-in ones.

        Args:
            root: The store's directory.
            built_in: Groups that are there in any case, as `built_in_groups`.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.

        Source: `SubscriptionGroupManager.decode`.
        """
        members = cls.read(root)
        table = cls(built_in, DataVersion.from_json(members.pop("dataVersion", None) or {}))
        found: dict[str, dict[str, Any]] = members.pop("subscriptionGroupTable", {})
        for name, fields in found.items():
            table._table[name] = SubscriptionGroupConfig.from_json(named(fields, groupName=name))
        table.other = members
        return table

    def put(self, config: SubscriptionGroupConfig, *, now: int) -> None:
        """Adds a group, or takes the place of the one of its name.

        Args:
            config: The group.
            now: Milliseconds since 1970, for the version.

        Raises:
            ArgumentError: A name that RocketMQ does not allow.

        Source: `SubscriptionGroupManager.updateSubscriptionGroupConfig`.
        """
        self._table[checked_name("group_name", config.group_name)] = config
        self.data_version = self.data_version.next(now)

    def remove(self, group: str, *, now: int) -> None:
        """Removes a group; one that is not there is no change.

        Args:
            group: Its name.
            now: Milliseconds since 1970, for the version.

        Source: `SubscriptionGroupManager.deleteSubscriptionGroupConfig`.
        """
        if self._table.pop(group, None) is not None:
            self.data_version = self.data_version.next(now)

    def to_json(self) -> dict[str, Any]:
        """The members of the file that are known here."""
        table = {name: config.to_json() for name, config in self._table.items()}
        return {"dataVersion": self.data_version.to_json(), "subscriptionGroupTable": table}

    def __getitem__(self, group: str) -> SubscriptionGroupConfig:
        return self._table[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"SubscriptionGroupTable({len(self)} groups, {self.data_version})"


def built_in_groups() -> list[SubscriptionGroupConfig]:
    """The groups that every broker has.

    Example:
        >>> built_in_groups()[0].group_name
        'TOOLS_CONSUMER'

    Source: `SubscriptionGroupManager.init`.
    """
    return [SubscriptionGroupConfig(group_name=name) for name in BUILT_IN]
