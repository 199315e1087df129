"""Explains the backlog of a group: in one queue, and in all of them.

Source: `ConsumerProgressSubCommand`, `ConsumerStatusSubCommand`, `ClientManageProcessor.checkClientConfig`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rmqfast.admin.explanation import Explanation
from rmqfast.admin.facts import GroupFacts, MessageFacts, QueueFacts
from rmqfast.admin.filters import passes_broker, passes_member
from rmqfast.admin.next_step import give_one_subscription
from rmqfast.admin.outcome import BROADCAST, owner_text, silent_members
from rmqfast.cells import time_text
from rmqfast.client.consumer.subscription import SubscriptionConflict, expression_of


def queue_explanation(subject: str, queue: QueueFacts, group: GroupFacts) -> Explanation:
    disagreement = [] if group.is_broadcasting else _disagreement(queue, group)
    return Explanation(
        subject=subject,
        sentences=(*_queue_sentences(queue, group), *disagreement),
        next_step=give_one_subscription(group.group) if disagreement else None,
        has_problem=bool(disagreement) or (not group.is_broadcasting and _expired_count(queue) > 0),
        queue=queue,
        group=group,
    )


def _expired_count(queue: QueueFacts) -> int:
    """Returns the number of messages that expired before the group had passed them."""
    return 0 if queue.consumer_offset is None else max(0, queue.min_offset - queue.consumer_offset)


def _queue_sentences(queue: QueueFacts, group: GroupFacts) -> list[str]:
    if group.is_broadcasting:
        return [BROADCAST]
    offset = "no offset" if queue.consumer_offset is None else f"offset {queue.consumer_offset}"
    assumption = " (worked out: it does not tell)" if queue.owner is not None and queue.owner_is_assumed else ""
    owner = f"owner {owner_text(queue, group)}{assumption}"
    sentences = [f"{offset} of {queue.max_offset}, first {queue.min_offset}, {owner}: {queue.behind} behind"]
    if _expired_count(queue):
        sentences.append(f"{_expired_count(queue)} messages expired before the group had passed them")
    if queue.consumer_offset is not None and queue.consumer_offset > queue.max_offset:
        sentences.append("the offset is behind the end: the next pull sets it right (OFFSET_ILLEGAL)")
    return sentences + _filter_sentences(queue, group)


def group_sentences(
    group: GroupFacts, queues: Sequence[QueueFacts], conflicts: Sequence[SubscriptionConflict]
) -> list[str]:
    names = ", ".join(member.client_id for member in group.members)
    kind = "pull" if group.pulls else "push"
    online = f"{len(group.members)} members online ({kind}, {group.message_model}): {names}"
    sentences = [online if group.is_online else "nobody is online"]
    sentences += [f"{conflict}: messages get lost" for conflict in conflicts]
    sentences += silent_members(group)
    if group.is_broadcasting:
        return [*sentences, BROADCAST]
    by_topic: dict[str, list[QueueFacts]] = defaultdict(list)
    for queue in queues:
        by_topic[queue.queue.topic].append(queue)
    for topic, topic_queues in sorted(by_topic.items()):
        behind = sum(queue.behind for queue in topic_queues)
        unowned = [str(queue.queue.queue_id) for queue in topic_queues if queue.owner is None and group.is_online]
        nobodys = f"; nobody is known to have queue {', '.join(unowned)}" if unowned else ""
        has_offset = any(queue.consumer_offset is not None for queue in topic_queues)
        backlog = f"{behind} behind" if has_offset else f"no offset yet, {behind} messages"
        sentences.append(f"{topic}: {backlog} in {len(topic_queues)} queues{nobodys}")
    return sentences if queues else [*sentences, "it has no offsets"]


def _filter_sentences(queue: QueueFacts, group: GroupFacts) -> list[str]:
    subscription = group.subscription
    if subscription is None:
        return [f"the group does not subscribe to {queue.queue.topic} now"] if group.is_online else []
    setter = group.setter()
    author = f"set by {setter.client_id} " if setter else ""
    description = f"{expression_of(subscription)}, {author}at {time_text(subscription.sub_version)}"
    return [f"the broker filters by {description}, for the whole group"]


def _disagreement(queue: QueueFacts, group: GroupFacts) -> list[str]:
    """Returns what the owner of a queue loses, as the broker filters by the subscription of another member."""
    owner, broker_filter = group.member(queue.owner), group.subscription
    if owner is None or owner.subscription is None or broker_filter is None or group.pulls:
        return []
    own = owner.subscription
    if not (own.is_tag_type and broker_filter.is_tag_type) or own.sub_string == broker_filter.sub_string:
        return []
    sentences = []
    # Tags that the broker delivers, but this member drops.
    dropped = [tag for tag in broker_filter.tags_set if not passes_member(own, _with_tag(queue, tag))]
    if dropped or (not broker_filter.tags_set and own.tags_set):
        tags = " and ".join(dropped) or "all other tags"
        sentences.append(f"{owner.client_id} wants {expression_of(own)}: it drops messages with {tags}, which are lost")
    # Tags that this member subscribes to, but the broker does not deliver.
    missed = [tag for tag in own.tags_set if not passes_broker(broker_filter, _with_tag(queue, tag))]
    if missed:
        sentences.append(f"{owner.client_id} never gets messages with {' and '.join(missed)}: the broker filters them")
    return sentences


def _with_tag(queue: QueueFacts, tag: str) -> MessageFacts:
    return MessageFacts(queue=queue.queue, queue_offset=0, tags=tag)
