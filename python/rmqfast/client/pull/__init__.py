"""Pulling queue by queue: `PullConsumer`, Java's `DefaultMQPullConsumer`."""

from rmqfast.client.consumer import MessageSelector
from rmqfast.client.consumer.active_member import MessageQueueListener
from rmqfast.client.pull.pull_consumer import PullCallback, PullConsumer, PullOptions
from rmqfast.client.pulling.single_pulls import PullResult, PullStatus

__all__ = [
    "MessageQueueListener",
    "MessageSelector",
    "PullCallback",
    "PullConsumer",
    "PullOptions",
    "PullResult",
    "PullStatus",
]
