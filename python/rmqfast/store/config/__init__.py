"""The files below `config/` of a store: topics, groups, offsets, filters, in RocketMQ 4.9.4's schema and bytes.

There is a table for each file. Nothing is written until `save` is called, which leaves the old file or the new one
whatever happens meanwhile; whoever saves owns the store. No thread is started, and a table is not made for several.
"""

from rmqfast.store.config.consumer_filters import BloomFilterData, ConsumerFilterData, ConsumerFilterTable
from rmqfast.store.config.consumer_offsets import ConsumerOffsetTable
from rmqfast.store.config.data_version import DataVersion
from rmqfast.store.config.delay_offsets import DelayOffsetTable
from rmqfast.store.config.groups import SubscriptionGroupConfig, SubscriptionGroupTable, groups_of_every_broker
from rmqfast.store.config.topics import TopicConfig, TopicConfigTable, topics_of_every_broker

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
    "groups_of_every_broker",
    "topics_of_every_broker",
]
