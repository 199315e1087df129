"""`config/subscriptionGroup.json`: the consumer groups of a broker.

Source: RocketMQ's `SubscriptionGroupConfig`, `SubscriptionGroupManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rmqfast.store.config.value import ConfigValue
from rmqfast.store.config.versioned_table import VersionedTable

__all__ = ["SubscriptionGroupConfig", "SubscriptionGroupTable", "groups_of_every_broker"]

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
        consume_enable: Whether it may consume.
        consume_from_min_enable: Whether it may consume from the first message on.
        consume_broadcast_enable: Whether each of its consumers may get every message.
        notify_consumer_ids_changed_enable: Whether its consumers are notified of each other.
        retry_queue_nums: Queues of its topic `%RETRY%group`.
        retry_max_times: How often a message is tried again before it goes to `%DLQ%group`.
        broker_id: From which broker it consumes; 0 is the master.
        which_broker_when_consume_slowly: From which one if it lags.

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
    """The groups by name, and their version; each change is a new version.

    Example:
        >>> table = SubscriptionGroupTable.load(getfixture("golden_store")("offsets-4.9.4"))
        >>> table["fx_pull"].retry_max_times
        16
    """

    FILE_NAME: ClassVar[str] = "subscriptionGroup.json"
    MEMBER: ClassVar[str] = "subscriptionGroupTable"
    NAME: ClassVar[str] = "group_name"

    def entry(self, members: Mapping[str, Any]) -> SubscriptionGroupConfig:
        """An entry of the file as a value."""
        return SubscriptionGroupConfig.from_json(members)


def groups_of_every_broker() -> list[SubscriptionGroupConfig]:
    """The groups that every broker has.

    Example:
        >>> groups_of_every_broker()[0].group_name
        'TOOLS_CONSUMER'
    """
    return [SubscriptionGroupConfig(group_name=name) for name in BUILT_IN]
