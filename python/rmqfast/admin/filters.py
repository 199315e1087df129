"""The two stages of a filter: at the broker by the hash of a tag or by SQL92, at the member by the tag itself.

Source: RocketMQ's `ExpressionMessageFilter`, `PullAPIWrapper.processPullResult`.
"""

from __future__ import annotations

from rmqfast.admin.facts import MessageFacts, tag_hash
from rmqfast.remoting.protocol.subscription_data import SUB_ALL, SubscriptionData


def passes_broker(subscription: SubscriptionData, message: MessageFacts) -> bool:
    """Whether the broker delivers a message to a subscription, by tag hash or by the result of its SQL92 filter."""
    if not subscription.is_tag_type:
        answer = message.sql.get(subscription.sub_string)
        return answer is not None and answer.is_passed is True
    return subscription.sub_string == SUB_ALL or message.tags_code in {
        *subscription.code_set,
        *map(tag_hash, subscription.tags_set),
    }


def passes_member(subscription: SubscriptionData, message: MessageFacts) -> bool:
    """Whether a consumer keeps a message that it received. It compares tags as strings, not as hashes."""
    # As in PullAPIWrapper.processPullResult, `*` and class filters need no check.
    is_checked = bool(subscription.tags_set) and not subscription.class_filter_mode
    return not is_checked or message.tags in subscription.tags_set
