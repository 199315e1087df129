"""Pulling by hand: `PullConsumer`; Java's `DefaultMQPullConsumer`."""

from rmqfast.client.consumer import MessageSelector, PullResult, PullStatus
from rmqfast.client.pull.options import MessageQueueListener, PullOptions
from rmqfast.client.pull.pull_consumer import PullConsumer
from rmqfast.client.pull.pull_consumer_impl import PullCallback

__all__ = [
    "MessageQueueListener",
    "MessageSelector",
    "PullCallback",
    "PullConsumer",
    "PullOptions",
    "PullResult",
    "PullStatus",
]
