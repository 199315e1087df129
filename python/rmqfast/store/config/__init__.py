"""Reads and writes the JSON files in `config/`, byte for byte as RocketMQ 4.9.4 does: topics, groups, offsets, filters.

Each file has a table class. Only `save` writes, atomically; the caller must own the store. Tables are not thread-safe.
"""

from rmqfast.store.config.consumer_filters import BloomFilterData, ConsumerFilterData, ConsumerFilterTable
from rmqfast.store.config.groups import SubscriptionGroupConfig, SubscriptionGroupTable, built_in_groups
from rmqfast.store.config.offsets import ConsumerOffsetTable, DelayOffsetTable
from rmqfast.store.config.topics import TopicConfig, TopicConfigTable, built_in_topics
from rmqfast.store.config.versioned_table import DataVersion

__all__ = [
    "BloomFilterData",
    "ConsumerFilterData",
    "ConsumerFilterTable",
    "ConsumerOffsetTable",
    "DataVersion",
    "DelayOffsetTable",
    "SubscriptionGroupConfig",
    "SubscriptionGroupTable",
    "TopicConfig",
    "TopicConfigTable",
    "built_in_groups",
    "built_in_topics",
]
