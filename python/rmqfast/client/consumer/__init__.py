"""Parts that all consumers share: subscriptions, offsets, rebalance, hooks."""

from rmqfast._native import MessageView
from rmqfast.client.consumer.consume_from_where import (
    ConsumeFromWhere,
    compute_pull_from_where,
    half_an_hour_ago,
    parse_consume_timestamp,
)
from rmqfast.client.consumer.hooks import ConsumeContext, ConsumeHook, FilterContext, FilterHook
from rmqfast.client.consumer.offset_store import (
    NO_OFFSET,
    UNREACHABLE,
    LocalFileOffsetStore,
    OffsetStore,
    ReadOffsetType,
    RemoteBrokerOffsetStore,
)
from rmqfast.client.consumer.queue_locks import ProcessQueueLike
from rmqfast.client.consumer.rebalance import PullRequest, Rebalance
from rmqfast.client.consumer.subscription import MessageSelector, build_subscription_data
from rmqfast.client.trace import ConsumeReturnType

__all__ = [
    "NO_OFFSET",
    "UNREACHABLE",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeHook",
    "ConsumeReturnType",
    "FilterContext",
    "FilterHook",
    "LocalFileOffsetStore",
    "MessageSelector",
    "MessageView",
    "OffsetStore",
    "ProcessQueueLike",
    "PullRequest",
    "ReadOffsetType",
    "Rebalance",
    "RemoteBrokerOffsetStore",
    "build_subscription_data",
    "compute_pull_from_where",
    "half_an_hour_ago",
    "parse_consume_timestamp",
]
