"""Decides from known facts whether a group has consumed a message.

Source: RocketMQ's `PullMessageProcessor`, `ExpressionMessageFilter`, `PullAPIWrapper.processPullResult`,
`DefaultMQAdminExtImpl.consumed`, `SendMessageProcessor.asyncConsumerSendMsgBack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from rmqfast.admin.explanation import Outcome, ordinal
from rmqfast.admin.facts import (
    CopyFacts,
    CopyKind,
    GroupFacts,
    MemberFacts,
    MessageFacts,
    QueueFacts,
    SqlAnswer,
    tag_hash,
)
from rmqfast.cells import time_text
from rmqfast.client.consumer.subscription import expression_of
from rmqfast.client.trace import TraceType, TraceView
from rmqfast.remoting.protocol.subscription_data import SUB_ALL, SubscriptionData


class Way(Enum):
    """The last step that a message reaches on its way to a consumer of the group."""

    DELIVERED = auto()
    FILTERED = auto()
    DROPPED = auto()
    UNKNOWN = auto()


class Delivery(NamedTuple):
    """The step at which a delivery ends, and the reason.

    `is_loss` marks a message that a member subscribes to but does not receive. `passed_by` is the broker's SQL92 filter
    that the message passed.
    """

    way: Way
    reason: str
    is_loss: bool = False
    passed_by: str | None = None


def delivery_of(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Delivery:
    """Returns the step at which a message's delivery ends, according to the current filters of broker and consumers."""
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


NOBODY = "nobody processed it"
BROADCAST = "broadcast: each member has its own offsets, and no broker knows them"
PASSED_UNKNOWN = "passed by the offset: whether anybody processed it is not known"


class Verdict(NamedTuple):
    outcome: Outcome
    sentences: Sequence[str]


def verdict_of(
    message: MessageFacts,
    queue: QueueFacts,
    group: GroupFacts,
    copies: Sequence[CopyFacts] = (),
    traces: Sequence[TraceView] = (),
) -> Verdict:
    if group.is_broadcasting:
        return Verdict(Outcome.BROADCASTING, [BROADCAST])
    # A copy proves that a member received the message, regardless of the offset.
    if copies:
        return _of_copies(copies, group)
    if queue.consumer_offset is None or message.queue_offset >= queue.consumer_offset:
        return _not_passed(message, queue, group)
    return _verdict_of_passed(message, queue, group, traces)


def _of_copies(copies: Sequence[CopyFacts], group: GroupFacts) -> Verdict:
    dead = [copy for copy in copies if copy.kind is CopyKind.DEAD]
    if dead:
        last = dead[-1]
        place = f"{last.queue.topic} offset {last.queue_offset}"
        times = f"consumed in vain {last.reconsume_times} times"
        since = f"since {time_text(last.store_timestamp)}"
        return Verdict(
            Outcome.DEAD_LETTER, [f"dead letter: {times}, {place} {since}; the group {group.group} gets it no more"]
        )
    # Each further copy counts one attempt more, so the highest count is the latest copy.
    last = max(copies, key=lambda copy: (copy.reconsume_times, copy.kind is CopyKind.RETRY))
    time = f"{ordinal(last.reconsume_times)} time"
    if last.kind is CopyKind.DELAYED:
        due_time = "not known" if last.due_timestamp is None else time_text(last.due_timestamp)
        return Verdict(Outcome.IN_RETRY, [f"in retry, {time}, due at {due_time}"])
    place = f"{last.queue.topic} queue {last.queue.queue_id} offset {last.queue_offset}"
    if last.consumer_offset is not None and last.queue_offset < last.consumer_offset:
        return Verdict(
            Outcome.CONSUMED,
            [f"consumed at the {ordinal(last.reconsume_times)} retry: its last copy, {place}, is passed"],
        )
    progress = "no offset yet" if last.consumer_offset is None else f"the group is at {last.consumer_offset}"
    return Verdict(Outcome.IN_RETRY, [f"in retry, {time}, waits in {place}: {progress}"])


def _not_passed(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Verdict:
    if message.queue_offset < queue.min_offset:
        text = f"expired: the queue begins at offset {queue.min_offset} now, and the group had not passed it"
        return Verdict(Outcome.EXPIRED, [text])
    offset = "none" if queue.consumer_offset is None else str(queue.consumer_offset)
    owner = f"owner {owner_text(queue, group)}"
    text = f"not yet consumed: offset {offset} of {queue.max_offset}, {owner}: {queue.behind} behind"
    sentences = [text]
    if not group.is_online:
        sentences.append(f"nobody of the group {group.group} is online")
    else:
        delivery = delivery_of(message, queue, group)
        if delivery.way is Way.FILTERED:
            sentences.append(f"will be filtered by the broker: {delivery.reason}")
        elif delivery.way is Way.DROPPED:
            sentences.append(f"will be dropped by {queue.owner}'s tag check: {delivery.reason}")
        elif delivery.passed_by is not None:
            sentences.append(f"will be passed by the broker's filter {delivery.passed_by}")
    return Verdict(Outcome.NOT_CONSUMED_YET, sentences)


def _verdict_of_passed(
    message: MessageFacts, queue: QueueFacts, group: GroupFacts, traces: Sequence[TraceView]
) -> Verdict:
    delivery = delivery_of(message, queue, group)
    if delivery.way is Way.UNKNOWN:
        verdict = Verdict(Outcome.UNKNOWN, [f"{PASSED_UNKNOWN}, as {delivery.reason}"])
    elif (doubt := _newer_than(message, queue, group)) is not None:
        verdict = Verdict(Outcome.UNKNOWN, [f"{PASSED_UNKNOWN}, as {doubt}", f"today {_by_today(delivery, queue)}"])
    else:
        verdict = _decide(delivery, queue)
    # A trace proves that a member processed the message; an offset only shows that the group passed it.
    if verdict.outcome is Outcome.UNKNOWN:
        verdict = _by_traces(verdict, group, traces)
    return Verdict(verdict.outcome, [*verdict.sentences, *_reservations(queue, group)])


def _newer_than(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> str | None:
    """Returns why a filter other than the current one may have applied to the message. `None` if that is impossible."""
    # Each rebalance gives a member's subscription a new version (a time). A version older than the message
    # proves that neither the tags nor the queue owners have changed since.
    subscription = filter_of(group, group.member(queue.owner))
    if subscription is None or not subscription.sub_version > message.store_timestamp > 0:
        return None
    return (
        f"the group's subscription {expression_of(subscription)} is of {time_text(subscription.sub_version)}, "
        f"the message of {time_text(message.store_timestamp)}: another subscription may have counted, "
        "and another member had the queue"
    )


def _by_today(delivery: Delivery, queue: QueueFacts) -> str:
    member = queue.owner or "a member"
    if delivery.way is Way.FILTERED:
        return f"the broker would filter it: {delivery.reason}"
    if delivery.way is Way.DROPPED:
        return f"{member}'s tag check would drop it: {delivery.reason}"
    return f"{member} would get it, {delivery.reason}"


def _decide(delivery: Delivery, queue: QueueFacts) -> Verdict:
    outcome = Outcome.LOST if delivery.is_loss else Outcome.FILTERED
    member = queue.owner or "a member"
    filtered = "" if delivery.passed_by is None else f"passed by the broker's filter {delivery.passed_by}, "
    way = f"passed by the offset, {filtered}delivered to {member}"
    if delivery.way is Way.FILTERED:
        return Verdict(outcome, [f"passed by the offset, filtered by the broker: {delivery.reason}: {NOBODY}"])
    if delivery.way is Way.DROPPED:
        return Verdict(outcome, [f"{way}, dropped by {member}'s tag check: {NOBODY}", delivery.reason])
    return Verdict(Outcome.CONSUMED, [f"consumed: {way}, {delivery.reason}, and never sent back"])


def _by_traces(unknown: Verdict, group: GroupFacts, traces: Sequence[TraceView]) -> Verdict:
    """Returns the verdict by the consumers' traces. Called if offsets and subscriptions do not decide."""
    for step in traces:
        if step.trace_type is TraceType.SUB_AFTER and step.group == group.group and step.is_success:
            text = f"consumed: by its trace {step.client_host} processed it at {time_text(step.timestamp)}"
            return Verdict(Outcome.CONSUMED, [text])
    text = (
        f"a trace of the group {group.group} would decide it, and there is none: members write it where tracing is on"
    )
    return Verdict(Outcome.UNKNOWN, [*unknown.sentences, text])


def _reservations(queue: QueueFacts, group: GroupFacts) -> list[str]:
    sentences = []
    if queue.owner is not None and queue.owner_is_assumed:
        sentences.append(f"{queue.owner} does not tell which queues it has: that it has this one is worked out")
    return sentences + silent_members(group)


def silent_members(group: GroupFacts) -> list[str]:
    return [f"not known: what {m.client_id} wants and has: {m.problem}" for m in group.members if m.problem]


def owner_text(queue: QueueFacts, group: GroupFacts) -> str:
    if queue.owner is not None:
        return queue.owner
    if not group.is_online:
        return "nobody"
    return "not known" if any(member.queues is None for member in group.members) else "nobody yet"
