"""Stores the consumer groups of a broker.

Source: RocketMQ's `SubscriptionGroupManager`, `Validators`, `SlaveSynchronize`, `SubscriptionGroupWrapper`.
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
    """Consumer groups by name. Changes are saved and passed to the data plane. Thread-safe."""

    def __init__(
        self, metadata: Metadata, config: Callable[[], BrokerConfig], data_plane: DataPlane, *, now: Callable[[], int]
    ) -> None:
        self._metadata = metadata
        self._config = config
        self._data_plane = data_plane
        self._now = now
        self._lock = QuietLock(reentrant=True)
        self._table = metadata.load_with(SubscriptionGroupTable, built_in_groups())
        # A new table gets the current time as its version.
        if self._table.data_version == DataVersion():
            self._table.data_version = DataVersion(timestamp=now())
        for group in self._table.values():
            data_plane.put_group(group)

    @property
    def data_version(self) -> DataVersion:
        return self._table.data_version

    def get(self, name: str) -> SubscriptionGroupConfig | None:
        return self._table.get(name)

    def groups(self) -> list[SubscriptionGroupConfig]:
        with self._lock:
            return list(self._table.values())

    def find(self, name: str, admit: Callable[[], object] = lambda: None) -> SubscriptionGroupConfig | None:
        """Returns a group. Creates a missing group if that is allowed, otherwise returns None.

        Does not wait for the disk, since a lost group is created again.
        """
        group = self.get(name)
        if group is not None:
            return group
        if not self._config().flag("autoCreateSubscriptionGroup") and not name.startswith(SYSTEM_GROUP_PREFIX):
            return None
        # Any client may name a group, so refuse names that RocketMQ clients refuse.
        if name_problem("group", name) is not None:
            return None
        admit()
        with self._lock:
            # Look again under the lock, since another thread may have created the group.
            return self.get(name) or self._put(SubscriptionGroupConfig(group_name=name))

    def update(self, group: SubscriptionGroupConfig) -> None:
        """Adds or replaces a group."""
        validate_group(group.group_name)
        with self._lock:
            self._put(group)
        self._metadata.flush_or_log()

    def take(self, table: SubscriptionGroupTable) -> None:
        """Replaces all groups and their version by those of the master."""
        with self._lock:
            for name in [name for name in self._table if name not in table]:
                self._table.remove(name, now=self._now())
                self._data_plane.remove_group(name)
                self._metadata.put(SubscriptionGroupTable, name, None)
            for group in table.values():
                if self._table.get(group.group_name) != group:
                    self._data_plane.put_group(group)
                    self._table.put(group, now=self._now())
                    self._metadata.put(SubscriptionGroupTable, group.group_name, group.to_json())
            self._table.data_version = table.data_version
            self._put_version()
        self._metadata.flush_or_log()

    def delete(self, name: str) -> None:
        with self._lock:
            self._table.remove(name, now=self._now())
            self._data_plane.remove_group(name)
            self._metadata.put(SubscriptionGroupTable, name, None)
            self._put_version()
        self._metadata.flush_or_log()

    def wrapper(self) -> dict[str, Any]:
        """Returns the groups in the form in which RocketMQ sends them."""
        with self._lock:
            groups, version = self.groups(), self.data_version
        table = {group.group_name: group.to_json() for group in groups}
        return {"dataVersion": version.to_json(), "subscriptionGroupTable": table}

    def _put(self, group: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
        most = self._config().number("maxGroupCount")
        if group.group_name not in self._table and len(self._table) >= most:
            remark = f"[QUOTA] consumer groups of a broker: expected at most {most}, got more (maxGroupCount)"
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
        # The data plane first: who sees the group in the table has the data plane answer at once.
        self._data_plane.put_group(group)
        self._table.put(group, now=self._now())
        self._metadata.put(SubscriptionGroupTable, group.group_name, group.to_json())
        self._put_version()
        return group

    def _put_version(self) -> None:
        self._metadata.put_member(SubscriptionGroupTable, "dataVersion", self.data_version.to_json())


def validate_group(name: str) -> str:
    """Returns a legal group name. Refuses other names with the text of RocketMQ's clients."""
    problem = name_problem("group", name)
    if problem is not None:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, problem)
    return name
