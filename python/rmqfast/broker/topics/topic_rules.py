"""Rules for topics that sends make, that every broker has, and that name servers are told.

Source: RocketMQ's `TopicConfigManager`, `BrokerController`.
"""

from __future__ import annotations

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.topics.topic_names import AUTO_CREATE_TOPIC_KEY_TOPIC
from rmqfast.store.config import TopicConfig, built_in_topics

READ_WRITE = 6
_INHERIT = 1


def inherits(model: TopicConfig, *, auto_create: bool) -> bool:
    """Returns whether sends may create topics after this one."""
    return model.is_inherited and (auto_create or model.topic_name != AUTO_CREATE_TOPIC_KEY_TOPIC)


def created_after(model: TopicConfig, name: str, queue_nums: int, sys_flag: int) -> TopicConfig:
    # a producer may want fewer queues than the default topic has, never more
    queues = max(0, min(queue_nums, model.write_queue_nums))
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        # TBW102 itself has the bit: a topic made after it must not be a model for others
        perm=model.perm & ~_INHERIT,
        topic_filter_type=model.topic_filter_type,
        topic_sys_flag=sys_flag,
    )


def mask_permission(topic: TopicConfig, broker_permission: int) -> TopicConfig:
    """Returns the topic as a broker registers it that does not both read and write."""
    if broker_permission & READ_WRITE == READ_WRITE:
        return topic
    return TopicConfig(
        topic_name=topic.topic_name,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=broker_permission,
    )


def trace_topic(config: BrokerConfig) -> str | None:
    return config.text("msgTraceTopicName") if config.flag("traceTopicEnable") else None


def broker_topics(config: BrokerConfig) -> list[TopicConfig]:
    """Returns the topics that a broker always has."""
    return built_in_topics(
        config.text("brokerClusterName"),
        config.text("brokerName"),
        default_queues=config.number("defaultTopicQueueNums"),
        auto_create=config.flag("autoCreateTopicEnable"),
        trace_topic=trace_topic(config),
    )
