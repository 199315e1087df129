"""`config/subscriptionGroup.json`: the consumer groups of a broker.

Source: RocketMQ's `SubscriptionGroupConfig`, `SubscriptionGroupManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rmqfast.store.config.value import ConfigValue
from rmqfast.store.config.versioned_table import VersionedTable

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
    """The settings of a consumer group at its broker.

    Attributes:
        consume_enable: Whether the group may consume.
        consume_from_min_enable: Whether the group may consume from the first message on.
        consume_broadcast_enable: Whether its consumers may broadcast: each gets every message.
        notify_consumer_ids_changed_enable: Whether consumers are notified when others join or leave.
        retry_queue_nums: Number of queues of its retry topic `%RETRY%group`.
        retry_max_times: Retries of a message before it moves to the dead-letter topic `%DLQ%group`.
        broker_id: Id of the broker that it consumes from; 0 is the master.
        which_broker_when_consume_slowly: Id of the broker that it consumes from when it lags.

    Example:
        >>> from rmqfast.store import SubscriptionGroupConfig, SubscriptionGroupTable
        >>> table = SubscriptionGroupTable()
        >>> table.put(SubscriptionGroupConfig(group_name="billing", retry_max_times=3), now=1_800_000_000_000)
        >>> table["billing"].retry_max_times
        3
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


class SubscriptionGroupTable(VersionedTable[SubscriptionGroupConfig]):
    """The groups by name, and their version, which each change increments."""

    FILE_NAME: ClassVar[str] = "subscriptionGroup.json"
    MEMBER: ClassVar[str] = "subscriptionGroupTable"
    NAME: ClassVar[str] = "group_name"

    def entry(self, members: Mapping[str, Any]) -> SubscriptionGroupConfig:
        return SubscriptionGroupConfig.from_json(members)


def built_in_groups() -> list[SubscriptionGroupConfig]:
    """Returns the groups that every broker has."""
    return [SubscriptionGroupConfig(group_name=name) for name in BUILT_IN]
