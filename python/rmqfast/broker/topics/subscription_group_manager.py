"""Keeps the consumer groups of a broker.

Source: `SubscriptionGroupManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rmqfast._native import DataPlane, name_problem
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.metadata import Metadata
from rmqfast.errors import ResponseError
from rmqfast.logs import QuietLock
from rmqfast.remoting import ResponseCode
from rmqfast.store.config import DataVersion, SubscriptionGroupConfig, SubscriptionGroupTable, built_in_groups

SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"


class SubscriptionGroupManager:
    """Groups by name; each change goes to the data plane and is saved. Any thread may call it."""

    def __init__(
        self, metadata: Metadata, config: Callable[[], BrokerConfig], data_plane: DataPlane, *, now: Callable[[], int]
    ) -> None:
        """Reads the groups of a store.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.
        """
        self._metadata = metadata
        self._config = config
        self._data_plane = data_plane
        self._now = now
        self._lock = QuietLock(reentrant=True)
        self._table = metadata.load_with(SubscriptionGroupTable, built_in_groups())
        if self._table.data_version == DataVersion():
            self._table.data_version = DataVersion(timestamp=now())
        for group in self._table.values():
            data_plane.put_group(group)

    @property
    def data_version(self) -> DataVersion:
        """When a group was changed last, and how often."""
        return self._table.data_version

    def get(self, name: str) -> SubscriptionGroupConfig | None:
        """A group; None where there is none."""
        return self._table.get(name)

    def groups(self) -> list[SubscriptionGroupConfig]:
        """All groups."""
        with self._lock:
            return list(self._table.values())

    def find(self, name: str, admit: Callable[[], object] = lambda: None) -> SubscriptionGroupConfig | None:
        """A group; it is made where it is not there and may be. Nobody waits for the disk then: it would be made again.

        Returns:
            None where there is none: groups are not made by themselves, or none may have this name.

        Raises:
            ResponseError: More groups than the broker takes.

        Source: `SubscriptionGroupManager.findSubscriptionGroupConfig`.
        """
        group = self.get(name)
        if group is not None:
            return group
        if not self._config().flag("autoCreateSubscriptionGroup") and not name.startswith(SYSTEM_GROUP_PREFIX):
            return None
        # any client names groups: none is made whose name no client of RocketMQ would take
        if name_problem("group", name) is not None:
            return None
        admit()
        with self._lock:
            # asked once more under the lock: another thread may have made it
            return self.get(name) or self._put(SubscriptionGroupConfig(group_name=name))

    def update(self, group: SubscriptionGroupConfig) -> None:
        """Adds a group, or takes the place of the one of its name.

        Raises:
            ResponseError: 1 for a name that no group may have.

        Source: `SubscriptionGroupManager.updateSubscriptionGroupConfig`.
        """
        validate_group(group.group_name)
        with self._lock:
            self._put(group)
        self._metadata.flush_or_log()

    def take(self, table: SubscriptionGroupTable) -> None:
        """Has the groups of a master in place of its own, and its version.

        Source: `SlaveSynchronize.syncSubscriptionGroupConfig`.
        """
        with self._lock:
            for name in [name for name in self._table if name not in table]:
                self._table.remove(name, now=self._now())
                self._data_plane.remove_group(name)
                self._metadata.put(SubscriptionGroupTable, name, None)
            for group in table.values():
                if self._table.get(group.group_name) != group:
                    self._table.put(group, now=self._now())
                    self._data_plane.put_group(group)
                    self._metadata.put(SubscriptionGroupTable, group.group_name, group.to_json())
            self._table.data_version = table.data_version
            self._put_version()
        self._metadata.flush_or_log()

    def delete(self, name: str) -> None:
        """Removes a group; one that is not there is no change.

        Source: `SubscriptionGroupManager.deleteSubscriptionGroupConfig`.
        """
        with self._lock:
            self._table.remove(name, now=self._now())
            self._data_plane.remove_group(name)
            self._metadata.put(SubscriptionGroupTable, name, None)
            self._put_version()
        self._metadata.flush_or_log()

    def wrapper(self) -> dict[str, Any]:
        """The groups as RocketMQ sends them.

        Source: `SubscriptionGroupWrapper`.
        """
        with self._lock:
            groups, version = self.groups(), self.data_version
        table = {group.group_name: group.to_json() for group in groups}
        return {"dataVersion": version.to_json(), "subscriptionGroupTable": table}

    def _put(self, group: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
        most = self._config().number("maxGroupCount")
        if group.group_name not in self._table and len(self._table) >= most:
            remark = f"[QUOTA] consumer groups of a broker: expected at most {most}, got more (maxGroupCount)"
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
        self._table.put(group, now=self._now())
        self._data_plane.put_group(group)
        self._metadata.put(SubscriptionGroupTable, group.group_name, group.to_json())
        self._put_version()
        return group

    def _put_version(self) -> None:
        self._metadata.put_member(SubscriptionGroupTable, "dataVersion", self.data_version.to_json())


def validate_group(name: str) -> str:
    """The name, if a group may have it.

    Raises:
        ResponseError: 1, with the remark of RocketMQ's clients.

    Source: `Validators.checkGroup`; the broker of 4.9.4 takes any name.
    """
    problem = name_problem("group", name)
    if problem is not None:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, problem)
    return name
