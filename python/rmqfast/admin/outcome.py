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
)
from rmqfast.admin.filters import passes_broker, passes_member
from rmqfast.cells import time_text
from rmqfast.client.consumer.subscription import expression_of
from rmqfast.client.trace import TraceType, TraceView
from rmqfast.remoting.protocol.subscription_data import SubscriptionData


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
    owner, broker_filter = group.member(queue.owner), group.subscription
    # Brokers drop a group's subscription with its last member.
    if not group.is_online:
        return Delivery(Way.UNKNOWN, f"nobody of the group {group.group} is online, and with it goes its subscription")
    if group.pulls:
        reason = f"each member of {group.group} filters its own pulls, and no broker tells who had the queue then"
        return Delivery(Way.UNKNOWN, reason)
    if broker_filter is None:
        return Delivery(Way.UNKNOWN, f"the group {group.group} does not subscribe to {message.queue.topic} now")
    if not broker_filter.is_tag_type:
        return _by_sql(message, broker_filter, group, owner)
    if not passes_broker(broker_filter, message):
        return _at_broker(message, broker_filter, group)
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
        return _at_broker(message, broker_filter, group)
    return _at_member(message, broker_filter, group, owner)._replace(
        passed_by=f"{expression_of(broker_filter)} ({answer.values_text})"
    )


def _at_broker(message: MessageFacts, broker_filter: SubscriptionData, group: GroupFacts) -> Delivery:
    setter = group.setter()
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


NOBODY = "nobody processed it"
BROADCAST = "broadcast: each member has its own offsets, and no broker knows them"
PASSED_UNKNOWN = "the offset has passed it, and whether anybody processed it is not known"


class Verdict(NamedTuple):
    outcome: Outcome
    sentences: Sequence[str]
    member: str | None = None


def verdict_of(
    message: MessageFacts,
    queue: QueueFacts,
    group: GroupFacts,
    copies: Sequence[CopyFacts] = (),
    retry_group: GroupFacts | None = None,
) -> Verdict:
    """Returns what became of a message, as far as brokers and members of today can tell.

    `retry_group` has the group's facts of its retry topic.
    """
    if group.is_broadcasting:
        return Verdict(Outcome.BROADCASTING, [BROADCAST])
    # A copy proves that a member received the message, regardless of the offset.
    if copies:
        return _of_copies(copies, group, retry_group)
    if queue.consumer_offset is None or message.queue_offset >= queue.consumer_offset:
        return _not_passed(message, queue, group)
    verdict = _of_passed(message, queue, group)
    return verdict._replace(sentences=[*verdict.sentences, *_reservations(queue, group)])


def traced_verdict(group: str, traces: Sequence[TraceView]) -> Verdict | None:
    """Returns the verdict by the consumers' traces; None if they do not decide.

    A trace proves that a member processed the message; an offset only shows that the group passed it.
    """
    for step in traces:
        if step.trace_type is TraceType.SUB_AFTER and step.group == group and step.is_success:
            text = f"by its trace, {step.client_host} processed it at {time_text(step.timestamp)}"
            return Verdict(Outcome.CONSUMED, [text])
    return None


def _of_copies(copies: Sequence[CopyFacts], group: GroupFacts, retry_group: GroupFacts | None) -> Verdict:
    last = newest_of(copies)
    if last.kind is CopyKind.DEAD:
        return _of_dead_letter(last, group)
    retry = f"the {ordinal(last.reconsume_times)} retry"
    if last.kind is CopyKind.DELAYED:
        return Verdict(Outcome.IN_RETRY, [f"{retry} is due at {_due_text(last)}"])
    place = copy_place_text(last)
    if last.consumer_offset is None or last.queue_offset >= last.consumer_offset:
        progress = "no offset yet" if last.consumer_offset is None else f"the group is at {last.consumer_offset}"
        return Verdict(Outcome.IN_RETRY, [f"{retry} waits in {place}: {progress}"])
    if retry_group is not None and _is_unchanged_since(last.store_timestamp, retry_group, group.clock_error):
        return Verdict(Outcome.CONSUMED, [f"the group has passed {retry}, {place}"])
    text = f"the offset has passed {retry}, {place}, and whether anybody processed it is not known: {_CHANGED}"
    return Verdict(Outcome.UNKNOWN, [text])


def newest_of(copies: Sequence[CopyFacts]) -> CopyFacts:
    """Returns the copy that counts: a dead letter that was sent again has a newer one in the retry topic."""
    return max(copies, key=lambda copy: (copy.store_timestamp, copy.reconsume_times, copy.kind is CopyKind.RETRY))


_CHANGED = "members have come or gone since, or the offset was reset"


def _is_unchanged_since(time: int, group: GroupFacts, clock_error: int) -> bool:
    """Whether no member has come or gone since, and no offset was reset: each gives subscriptions a new version."""
    kept = group.subscription
    return kept is not None and kept.sub_version + clock_error <= time


def copy_place_text(copy: CopyFacts) -> str:
    return f"{copy.queue.topic} queue {copy.queue.queue_id} offset {copy.queue_offset}"


def dead_text(copy: CopyFacts) -> str:
    times = f"consumed in vain {copy.reconsume_times} times"
    # Orderly consumers send dead letters with a delay, too.
    if copy.due_timestamp is not None:
        return f"{times}, a dead letter from {_due_text(copy)} on"
    return f"{times}, {copy.queue.topic} offset {copy.queue_offset} since {time_text(copy.store_timestamp)}"


def _of_dead_letter(copy: CopyFacts, group: GroupFacts) -> Verdict:
    text = dead_text(copy)
    if _is_unchanged_since(copy.store_timestamp, group, group.clock_error):
        return Verdict(Outcome.DEAD_LETTER, [f"{text}; the group {group.group} gets it no more"])
    return Verdict(Outcome.UNKNOWN, [f"{text}, and whether anybody processed it since is not known: {_CHANGED}"])


def _due_text(copy: CopyFacts) -> str:
    return "a time that is not known" if copy.due_timestamp is None else time_text(copy.due_timestamp)


def _not_passed(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Verdict:
    if message.queue_offset < queue.min_offset:
        text = f"the queue begins at offset {queue.min_offset} now, and the group had not passed it"
        return Verdict(Outcome.EXPIRED, [text])
    # Brokers answer 0 for a group without an offset, as long as the queue has its first message.
    if not queue.consumer_offset and not group.is_online and not group.has_offsets:
        text = "the group has no offset here, or 0, and no member is online to tell whether the group broadcasts"
        return Verdict(Outcome.UNKNOWN, [text])
    sentences = [not_passed_text(queue, owner_text(queue, group))]
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


def not_passed_text(queue: QueueFacts, owner: str) -> str:
    offset = "none" if queue.consumer_offset is None else str(queue.consumer_offset)
    return f"the group's offset has not passed it: {offset} of {queue.max_offset}, {queue.behind} behind, owner {owner}"


def _of_passed(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Verdict:
    delivery = delivery_of(message, queue, group)
    if delivery.way is Way.UNKNOWN:
        return Verdict(Outcome.UNKNOWN, [f"{PASSED_UNKNOWN}: {delivery.reason}"])
    doubt = _newer_than(message, group)
    if doubt is not None:
        return Verdict(Outcome.UNKNOWN, [f"{PASSED_UNKNOWN}: {doubt}", f"today {_by_today(delivery, queue)}"])
    return decide(delivery, queue)


def _newer_than(message: MessageFacts, group: GroupFacts) -> str | None:
    """Returns why a filter other than the current one may have applied to the message. `None` if that is impossible."""
    # Each rebalance gives a member's subscription a new version (a time). A version older than the message
    # proves that neither the tags nor the queue owners have changed since.
    subscription = group.subscription
    # Versions are of the members' clocks, the message of the broker's.
    if subscription is None or not subscription.sub_version + group.clock_error > message.store_timestamp > 0:
        return None
    version = f"{expression_of(subscription)} (of {time_text(subscription.sub_version)})"
    if subscription.sub_version > message.store_timestamp:
        return f"the group's subscription {version} is newer than the message (of {time_text(message.store_timestamp)})"
    return f"the group's subscription {version} may be newer than the message, as the clock of a member may be behind"


def _by_today(delivery: Delivery, queue: QueueFacts) -> str:
    member = queue.owner or "a member"
    if delivery.way is Way.FILTERED:
        return f"the broker would filter it: {delivery.reason}"
    if delivery.way is Way.DROPPED:
        return f"{member}'s tag check would drop it: {delivery.reason}"
    return f"{member} would get it, {delivery.reason}"


def decide(delivery: Delivery, queue: QueueFacts) -> Verdict:
    """Returns the verdict of a message that the offset has passed, by the step at which its delivery ended."""
    outcome = Outcome.LOST if delivery.is_loss else Outcome.FILTERED
    member = queue.owner or "a member"
    filtered = "" if delivery.passed_by is None else f"passed by the broker's filter {delivery.passed_by}, "
    way = f"passed by the offset, {filtered}delivered to {member}"
    if delivery.way is Way.FILTERED:
        return Verdict(outcome, [f"passed by the offset, filtered by the broker: {delivery.reason}: {NOBODY}"])
    if delivery.way is Way.DROPPED:
        return Verdict(outcome, [f"{way}, dropped by {member}'s tag check: {NOBODY}", delivery.reason], queue.owner)
    return Verdict(Outcome.CONSUMED, [f"{way}, {delivery.reason}, and never sent back"], queue.owner)


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
