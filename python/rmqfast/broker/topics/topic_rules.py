"""Rules for topics that sends make, that every broker has, and that name servers are told.

Source: `TopicConfigManager`, `BrokerController`.
"""

from __future__ import annotations

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.topics.topic_names import AUTO_CREATE_TOPIC_KEY_TOPIC
from rmqfast.store.config import TopicConfig, built_in_topics

READ_WRITE = 6
_INHERIT = 1


def inherits(model: TopicConfig, *, auto_create: bool) -> bool:
    """Whether a topic that is made while a message is sent may take after this one."""
    return model.is_inherited and (auto_create or model.topic_name != AUTO_CREATE_TOPIC_KEY_TOPIC)


def created_after(model: TopicConfig, name: str, queue_nums: int, sys_flag: int) -> TopicConfig:
    """The topic that sending makes.

    Source: `TopicConfigManager.createTopicInSendMessageMethod`.
    """
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


def masked(topic: TopicConfig, broker_permission: int) -> TopicConfig:
    """The topic as it is registered by a broker that does not both read and write.

    Source: `BrokerController.registerBrokerAll`.
    """
    if broker_permission & READ_WRITE == READ_WRITE:
        return topic
    return TopicConfig(
        topic_name=topic.topic_name,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=broker_permission,
    )


def trace_topic(config: BrokerConfig) -> str | None:
    """The topic that the broker has for traces, if it has one.

    Source: the constructor of `TopicConfigManager`.
    """
    return config.text("msgTraceTopicName") if config.flag("traceTopicEnable") else None


def broker_topics(config: BrokerConfig) -> list[TopicConfig]:
    """The topics that the broker has in any case.

    Source: the constructor of `TopicConfigManager`.
    """
    return built_in_topics(
        config.text("brokerClusterName"),
        config.text("brokerName"),
        default_queues=config.number("defaultTopicQueueNums"),
        auto_create=config.flag("autoCreateTopicEnable"),
        trace_topic=trace_topic(config),
    )
