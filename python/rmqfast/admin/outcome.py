"""What became of a message in a group: told from facts alone.

Source: `DefaultMQAdminExtImpl.consumed`, `SendMessageProcessor.asyncConsumerSendMsgBack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rmqfast.admin.delivery import Way, delivery_of
from rmqfast.admin.explanation import Outcome, ordinal, time_text
from rmqfast.admin.facts import CopyFacts, CopyKind, GroupFacts, MessageFacts, QueueFacts

NOBODY = "nobody processed it"


class Verdict(NamedTuple):
    """An outcome and why.

    Attributes:
        outcome: What became of the message.
        sentences: That in words, then what else matters.
    """

    outcome: Outcome
    sentences: Sequence[str]


def verdict_of(
    message: MessageFacts, queue: QueueFacts, group: GroupFacts, copies: Sequence[CopyFacts] = ()
) -> Verdict:
    """What became of a message in a group.

    Args:
        message: The message.
        queue: Its queue, and how far the group is in it.
        group: The group, as the queue's broker knows it.
        copies: What members sent back of the message.
    """
    if group.is_broadcasting:
        text = "broadcast: each member has its own offsets, and no broker knows them"
        return Verdict(Outcome.BROADCASTING, [text])
    if copies:
        return _of_copies(copies, group)
    if queue.consumer_offset is None or message.queue_offset >= queue.consumer_offset:
        return _not_passed(message, queue, group)
    return _passed(message, queue, group)


def _of_copies(copies: Sequence[CopyFacts], group: GroupFacts) -> Verdict:
    dead = [copy for copy in copies if copy.kind is CopyKind.DEAD]
    if dead:
        last = dead[-1]
        where = f"{last.queue.topic} offset {last.queue_offset}"
        times = f"consumed in vain {last.reconsume_times} times"
        since = f"since {time_text(last.store_timestamp)}"
        return Verdict(
            Outcome.DEAD_LETTER, [f"dead letter: {times}, {where} {since}; the group {group.group} gets it no more"]
        )
    last = max(copies, key=lambda copy: (copy.reconsume_times, copy.kind is CopyKind.RETRY))
    time = f"{ordinal(last.reconsume_times)} time"
    if last.kind is CopyKind.DELAYED:
        due = "not known" if last.due_timestamp is None else time_text(last.due_timestamp)
        return Verdict(Outcome.IN_RETRY, [f"in retry, {time}, due at {due}"])
    place = f"{last.queue.topic} queue {last.queue.queue_id} offset {last.queue_offset}"
    if last.consumer_offset is not None and last.queue_offset < last.consumer_offset:
        return Verdict(
            Outcome.CONSUMED,
            [f"consumed at the {ordinal(last.reconsume_times)} retry: its last copy, {place}, is passed"],
        )
    known = "no offset yet" if last.consumer_offset is None else f"the group is at {last.consumer_offset}"
    return Verdict(Outcome.IN_RETRY, [f"in retry, {time}, waits in {place}: {known}"])


def _not_passed(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Verdict:
    if message.queue_offset < queue.min_offset:
        text = f"expired: the queue begins at offset {queue.min_offset} now, and the group had not passed it"
        return Verdict(Outcome.EXPIRED, [text])
    at = "none" if queue.consumer_offset is None else str(queue.consumer_offset)
    owner = f"owner {owner_text(queue, group)}"
    text = f"not yet consumed: offset {at} of {queue.max_offset}, {owner}: {queue.behind} behind"
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


def _passed(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Verdict:
    delivery = delivery_of(message, queue, group)
    lost = Outcome.LOST if delivery.is_loss else Outcome.FILTERED
    who = queue.owner or "a member"
    filtered = "" if delivery.passed_by is None else f"passed by the broker's filter {delivery.passed_by}, "
    way = f"passed by the offset, {filtered}delivered to {who}"
    if delivery.way is Way.FILTERED:
        verdict = Verdict(lost, [f"passed by the offset, filtered by the broker: {delivery.reason}: {NOBODY}"])
    elif delivery.way is Way.DROPPED:
        text = f"{way}, dropped by {who}'s tag check: {NOBODY}"
        verdict = Verdict(lost, [text, delivery.reason])
    elif delivery.way is Way.TAKEN:
        text = f"consumed: {way}, {delivery.reason}, and never sent back"
        verdict = Verdict(Outcome.CONSUMED, [text])
    else:
        text = f"passed by the offset: whether anybody processed it is not known, as {delivery.reason}"
        verdict = Verdict(Outcome.UNKNOWN, [text])
    return Verdict(verdict.outcome, [*verdict.sentences, *_reservations(message, queue, group)])


def _reservations(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> list[str]:
    """What may have been otherwise when the message was passed."""
    found = []
    kept = group.subscription
    if kept is not None and kept.sub_version > message.store_timestamp > 0:
        found.append(
            f"the subscription is of {time_text(kept.sub_version)}, "
            f"the message of {time_text(message.store_timestamp)}: another one may have counted when it was passed"
        )
    if queue.owner is not None and queue.owner_is_assumed:
        found.append(f"{queue.owner} does not tell which queues it has: that it has this one is worked out")
    found += [f"not known: what {m.client_id} wants and has: {m.problem}" for m in group.members if m.problem]
    return found


def owner_text(queue: QueueFacts, group: GroupFacts) -> str:
    """Who has a queue, for people."""
    if queue.owner is not None:
        return queue.owner
    if not group.is_online:
        return "nobody"
    return "not known" if any(member.queues is None for member in group.members) else "nobody yet"
