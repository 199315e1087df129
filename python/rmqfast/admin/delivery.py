"""Decides from known facts at which step the delivery of a message to a group ends.

Source: `PullMessageProcessor`, `ExpressionMessageFilter`, `PullAPIWrapper.processPullResult`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from rmqfast.admin.facts import GroupFacts, MemberFacts, MessageFacts, QueueFacts, SqlAnswer, tag_hash
from rmqfast.cells import time_text
from rmqfast.client.consumer.subscription import expression_of
from rmqfast.remoting.protocol.subscription_data import SUB_ALL, SubscriptionData


class Way(Enum):
    """The last step that a message reaches on its way to a consumer of the group."""

    DELIVERED = auto()
    FILTERED = auto()
    DROPPED = auto()
    UNKNOWN = auto()


class Delivery(NamedTuple):
    """The step at which a delivery ends. `reason` completes the phrase "by the broker" or "by the tag check of".

    `is_loss` marks a message that a member subscribes to but does not receive. `passed_by` is the broker's SQL92 filter
    that the message passed.
    """

    way: Way
    reason: str
    is_loss: bool = False
    passed_by: str | None = None


def delivery_of(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Delivery:
    """Applies the current filters of the broker and the consumers to a message."""
    owner = group.member(queue.owner)
    broker_filter = filter_of(group, owner)
    # Brokers drop a group's subscription with its last member.
    if not group.is_online:
        return Delivery(Way.UNKNOWN, f"nobody of the group {group.group} is online, and with it goes its subscription")
    if broker_filter is None:
        return Delivery(Way.UNKNOWN, f"the group {group.group} does not subscribe to {message.queue.topic} now")
    if not broker_filter.is_tag_type:
        return _by_sql(message, broker_filter, group, owner)
    if not passes_broker(broker_filter, message):
        return _at_broker(message, broker_filter, group, owner)
    return _at_member(message, broker_filter, group, owner)


def _by_sql(
    message: MessageFacts, broker_filter: SubscriptionData, group: GroupFacts, owner: MemberFacts | None
) -> Delivery:
    answer = message.sql.get(broker_filter.sub_string, SqlAnswer(problem="it was not asked"))
    if answer.is_passed is None:
        return Delivery(
            Way.UNKNOWN, f"the broker does not say what {expression_of(broker_filter)} is of it: {answer.problem}"
        )
    if not answer.is_passed:
        return _at_broker(message, broker_filter, group, owner)
    return _at_member(message, broker_filter, group, owner)._replace(
        passed_by=f"{expression_of(broker_filter)} ({answer.values_text})"
    )


def filter_of(group: GroupFacts, owner: MemberFacts | None) -> SubscriptionData | None:
    """Returns the broker's filter: a pull consumer's own, or the one stored for the group. None if there is neither."""
    # For push consumers, the broker uses the subscription stored from heartbeats.
    if group.pulls and owner is not None and owner.subscription is not None:
        return owner.subscription
    return group.subscription


def _at_broker(
    message: MessageFacts, broker_filter: SubscriptionData, group: GroupFacts, owner: MemberFacts | None
) -> Delivery:
    setter = owner if group.pulls and owner is not None and broker_filter is owner.subscription else group.setter()
    author = f"set by member {setter.client_id}" if setter else "set by a member that is not known"
    subscription = (
        f"the group's subscription {expression_of(broker_filter)} ({author} at {time_text(broker_filter.sub_version)})"
    )
    if broker_filter.is_tag_type:
        reason = f"{tag_text(message)} is not in {subscription}"
    else:
        reason = f"{subscription} is not true of it: {message.sql[broker_filter.sub_string].values_text}"
    # A broker stores one subscription per group, so members that subscribe to more lose messages.
    losers = [m.client_id for m in group.members if m.subscription and m is not setter and _would_get(m, message)]
    if losers:
        return Delivery(Way.FILTERED, f"{reason}, though {' and '.join(losers)} subscribed to it", is_loss=True)
    return Delivery(Way.FILTERED, reason)


def _at_member(
    message: MessageFacts, broker_filter: SubscriptionData, group: GroupFacts, owner: MemberFacts | None
) -> Delivery:
    candidates = list(group.members) if owner is None else [owner]
    subscribed = [(m, m.subscription) for m in candidates if m.subscription is not None]
    if len(subscribed) < len(candidates):
        silent = ", ".join(m.client_id for m in candidates if m.subscription is None)
        return Delivery(Way.UNKNOWN, f"{silent} may have got it and does not tell what it wants")
    kept_by = [m for m, own in subscribed if passes_member(own, message)]
    # The owner is not known, but each candidate keeps the message.
    if len(kept_by) == len(subscribed):
        return Delivery(Way.DELIVERED, f"which wants {expression_of(subscribed[0][1])}")
    if kept_by:
        return Delivery(Way.UNKNOWN, "nobody is known to have the queue, and members want different things")
    member, own = subscribed[0]
    reason = f"{tag_text(message)} is not in {member.client_id}'s own subscription {expression_of(own)}"
    # The broker let the tag pass on purpose, so another member set its filter.
    if message.tags in broker_filter.tags_set or not broker_filter.tags_set:
        text = f"{reason}, while the broker filters by {expression_of(broker_filter)} for the whole group"
        setter = group.setter()
        return Delivery(Way.DROPPED, f"{text}, set by {setter.client_id}" if setter else text, is_loss=True)
    return Delivery(
        Way.DROPPED, f"{reason}; the broker let it pass as another tag has the same hash {message.tags_code}"
    )


def _would_get(member: MemberFacts, message: MessageFacts) -> bool:
    own = member.subscription
    return own is not None and passes_broker(own, message) and passes_member(own, message)


def tag_text(message: MessageFacts) -> str:
    return f"its tag {message.tags}" if message.tags else "having no tag, it"


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
