"""`config/topics.json`: the topics of a broker, their queues and permissions.

Source: RocketMQ's `TopicConfig`, `PermName`, `TopicConfigManager`, `TopicConfigSerializeWrapper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rmqfast.store.config.value import ConfigValue
from rmqfast.store.config.versioned_table import VersionedTable

__all__ = ["PERM_READ", "PERM_WRITE", "TopicConfig", "TopicConfigTable", "built_in_topics"]

PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1


@dataclass(frozen=True, kw_only=True)
class TopicConfig(ConfigValue):
    """The settings of a topic at its broker.

    Attributes:
        read_queue_nums: Number of queues that consumers see.
        write_queue_nums: Number of queues that producers see.
        perm: Sum of 4 (readable), 2 (writable) and 1 (new topics inherit its settings).
        topic_filter_type: "SINGLE_TAG" or "MULTI_TAG".
        topic_sys_flag: 1 for a topic of a unit, 2 for a retry topic of a unit.
    """

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether consumers may read from the topic."""
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        """Whether producers may send to the topic."""
        return bool(self.perm & PERM_WRITE)

    @property
    def is_inherited(self) -> bool:
        """Whether sends may create topics that copy this topic's settings."""
        return bool(self.perm & PERM_INHERIT)


class TopicConfigTable(VersionedTable[TopicConfig]):
    """The topics by name, and their version, which each change increments.

    Example:
        >>> table = TopicConfigTable.load(getfixture("golden_store")("basic-4.9.4"))
        >>> table["fx_q4"].write_queue_nums, table.data_version.counter
        (4, 6)
        >>> table.put(TopicConfig(topic_name="orders"), now=1_800_000_000_000)
        >>> table.save(getfixture("tmp_path"))
        >>> TopicConfigTable.load(getfixture("tmp_path")) == table
        True
    """

    FILE_NAME: ClassVar[str] = "topics.json"
    MEMBER: ClassVar[str] = "topicConfigTable"
    NAME: ClassVar[str] = "topic_name"

    def entry(self, members: Mapping[str, Any]) -> TopicConfig:
        return TopicConfig.from_json(members)


def built_in_topics(
    cluster_name: str,
    broker_name: str,
    *,
    default_queues: int = 8,
    auto_create: bool = True,
    trace_topic: str | None = None,
) -> list[TopicConfig]:
    """Returns the topics that every broker has.

    Args:
        cluster_name: Name of the cluster (`brokerClusterName`), also the name of a topic.
        broker_name: Name of the broker (`brokerName`), also the name of a topic.
        default_queues: Number of queues that new topics inherit (`defaultTopicQueueNums`).
        auto_create: Whether a send creates a missing topic (`autoCreateTopicEnable`).
        trace_topic: Topic of traces (`msgTraceTopicName`); None unless `traceTopicEnable`.
    """
    # with the names and queue counts of RocketMQ's TopicConfigManager
    all_permissions = PERM_READ | PERM_WRITE | PERM_INHERIT
    rows = [
        ("SELF_TEST_TOPIC", 1, 6),
        # the default topic, whose settings automatically created topics inherit
        *([("TBW102", default_queues, all_permissions)] if auto_create else []),
        ("BenchmarkTest", 1024, 6),
        (cluster_name, 16, all_permissions),
        (broker_name, 1, all_permissions),
        ("OFFSET_MOVED_EVENT", 1, 6),
        # one queue per delay level
        ("SCHEDULE_TOPIC_XXXX", 18, 6),
        *([(trace_topic, 1, 6)] if trace_topic else []),
        # for the replies of Producer.request
        (f"{cluster_name}_REPLY_TOPIC", 1, 6),
    ]
    return [
        TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
        for name, queues, perm in rows
    ]
