"""How a queue and a group stand, in sentences.

Source: `ConsumerProgressSubCommand`, `ConsumerStatusSubCommand`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rmqfast.admin.delivery import passes_broker, passes_member
from rmqfast.admin.explanation import time_text
from rmqfast.admin.facts import GroupFacts, MemberFacts, MessageFacts, QueueFacts
from rmqfast.admin.outcome import owner_text
from rmqfast.client.consumer.subscription import SubscriptionConflict, expression_of
from rmqfast.remoting.protocol.subscription_data import SubscriptionData


def queue_sentences(queue: QueueFacts, group: GroupFacts) -> list[str]:
    """How a group stands in a queue."""
    if group.is_broadcasting:
        return ["broadcast: each member has its own offsets, and no broker knows them"]
    at = "no offset" if queue.consumer_offset is None else f"offset {queue.consumer_offset}"
    how = " (worked out: it does not tell)" if queue.owner is not None and queue.owner_is_assumed else ""
    owner = f"owner {owner_text(queue, group)}{how}"
    found = [f"{at} of {queue.max_offset}, first {queue.min_offset}, {owner}: {queue.behind} behind"]
    if queue.consumer_offset is not None and queue.consumer_offset < queue.min_offset:
        gone = queue.min_offset - queue.consumer_offset
        found.append(f"{gone} messages expired before the group had passed them")
    if queue.consumer_offset is not None and queue.consumer_offset > queue.max_offset:
        found.append("the offset is behind the end: the next pull sets it right (OFFSET_ILLEGAL)")
    return found + _filter_sentences(queue, group)


def group_sentences(
    group: GroupFacts, queues: Sequence[QueueFacts], conflicts: Sequence[SubscriptionConflict]
) -> list[str]:
    """How a group stands."""
    names = ", ".join(member.client_id for member in group.members)
    kind = "pull" if group.pulls else "push"
    online = f"{len(group.members)} members online ({kind}, {group.message_model}): {names}"
    found = [online if group.is_online else "nobody is online"]
    found += [f"{conflict}: messages get lost" for conflict in conflicts]
    found += [f"not known: what {m.client_id} wants and has: {m.problem}" for m in group.members if m.problem]
    if group.is_broadcasting:
        return [*found, "broadcast: each member has its own offsets, and no broker knows them"]
    by_topic: dict[str, list[QueueFacts]] = defaultdict(list)
    for queue in queues:
        by_topic[queue.queue.topic].append(queue)
    for topic, those in sorted(by_topic.items()):
        behind = sum(queue.behind for queue in those)
        left = [str(queue.queue.queue_id) for queue in those if queue.owner is None and group.is_online]
        nobodys = f"; nobody is known to have queue {', '.join(left)}" if left else ""
        begun = any(queue.consumer_offset is not None for queue in those)
        how = f"{behind} behind" if begun else f"no offset yet, {behind} messages"
        found.append(f"{topic}: {how} in {len(those)} queues{nobodys}")
    return found if queues else [*found, "it has no offsets"]


def _filter_sentences(queue: QueueFacts, group: GroupFacts) -> list[str]:
    kept, owner = group.subscription, group.member(queue.owner)
    if kept is None:
        return [f"the group does not subscribe to {queue.queue.topic} now"] if group.is_online else []
    setter = group.setter()
    by = f"set by {setter.client_id} " if setter else ""
    found = [f"the broker takes the group to want {expression_of(kept)}, {by}at {time_text(kept.sub_version)}"]
    if owner is not None and owner.subscription is not None and not group.pulls:
        found += _disagreement(owner, owner.subscription, kept, queue)
    return found


def _disagreement(owner: MemberFacts, own: SubscriptionData, kept: SubscriptionData, queue: QueueFacts) -> list[str]:
    if not (own.is_tag_type and kept.is_tag_type) or own.sub_string == kept.sub_string:
        return []
    found = []
    dropped = [tag for tag in kept.tags_set if not passes_member(own, _with_tag(queue, tag))]
    if dropped or (not kept.tags_set and own.tags_set):
        what = " and ".join(dropped) or "all other tags"
        found.append(f"{owner.client_id} wants {expression_of(own)}: it drops messages with {what}, which are lost")
    missed = [tag for tag in own.tags_set if not passes_broker(kept, _with_tag(queue, tag))]
    if missed:
        found.append(f"{owner.client_id} never gets messages with {' and '.join(missed)}: the broker filters them")
    return found


def _with_tag(queue: QueueFacts, tag: str) -> MessageFacts:
    return MessageFacts(queue=queue.queue, queue_offset=0, tags=tag)
