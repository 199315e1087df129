"""Pulling in the background: `LitePullConsumer`; Java's `DefaultLitePullConsumer`."""

from rmqfast.client.consumer import ConsumeFromWhere, MessageSelector
from rmqfast.client.consumer.active_member import MessageQueueListener
from rmqfast.client.lite_pull.lite_pull_consumer import LitePullConsumer
from rmqfast.client.lite_pull.lite_pull_member import TopicMessageQueueChangeListener
from rmqfast.client.lite_pull.options import LitePullOptions

__all__ = [
    "ConsumeFromWhere",
    "LitePullConsumer",
    "LitePullOptions",
    "MessageQueueListener",
    "MessageSelector",
    "TopicMessageQueueChangeListener",
]
