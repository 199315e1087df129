"""Checks of consumer groups: subscriptions, members, owners of queues, backlogs, retries and dead letters.

Source: `ConsumerManager`, `RebalanceImpl`, `SubscriptionData`, `DefaultMessageStore.CleanCommitLogService`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rmqfast.admin import ConsumerRunningInfo, GroupSummary, QueueProgress, SubscriptionConflict
from rmqfast.admin.admin_client import DLQ_PREFIX
from rmqfast.cells import duration_text, time_text
from rmqfast.client.consumer.subscription import expression_of
from rmqfast.doctor.examination import OLD, Examination
from rmqfast.doctor.finding import Finding, Level
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.consumer_connection import BROADCASTING
from rmqfast.remoting.protocol.subscription_data import SubscriptionData, meaning_of

_HOUR, _DAY = 3_600_000, 86_400_000
#: Time left before files are deleted from which on a backlog is at risk, if it is less than a quarter of the whole.
_SHORT = 6 * _HOUR
#: Messages that come back in a minute from which on a group is in trouble, if they are half of all that it gets.
_MANY_RETRIES = 10
#: Time without a consumed message after which a queue counts as stuck.
_STUCK = 2 * 60_000
_SHOWN = 8


def find_subscription_conflicts(examination: Examination) -> Iterator[Finding]:
    """Finds groups whose members want different messages: brokers filter for all of them by the newest subscription."""
    for group in examination.snapshot.groups:
        for conflict in group.conflicts or ():
            wishes = ", ".join(f"{name} wants {expression}" for name, expression in conflict.expressions.items())
            losing = _losing_queues(examination, group, conflict)
            loss = f"; {_list_text(losing)} {_verb(losing, 'loses', 'lose')} messages" if losing else ""
            yield Finding(
                name="subscription-conflict",
                subject=f"group {group.group}",
                evidence=f"in {conflict.topic}: {wishes}; {_broker_side(examination, group, conflict.topic)}{loss}",
                next_step="let all members subscribe alike, or give each subscription a group of its own",
            )


def find_duplicate_clients(examination: Examination) -> Iterator[Finding]:
    """Finds processes that share a client id: they get the same queues, and others get none."""
    addresses: dict[tuple[str, str], set[str]] = defaultdict(set)
    doubled: set[tuple[str, str]] = set()
    for broker in examination.snapshot.brokers:
        for group, known in (broker.consumers or {}).items():
            here: dict[str, set[str]] = defaultdict(set)
            for member in known.connections:
                here[member.client_id].add(member.client_addr)
            for client_id, told in here.items():
                addresses[group, client_id] |= told
                if len(told) > 1:
                    doubled.add((group, client_id))
    for (group, client_id), told in sorted(addresses.items()):
        # One process has a connection, and so a port, for each broker.
        if (group, client_id) in doubled or len({address.rpartition(":")[0] for address in told}) > 1:
            yield Finding(
                name="duplicate-client-id",
                subject=f"group {group}",
                evidence=f"{client_id} is connected from {', '.join(sorted(told))}",
                next_step="give each process an instance name of its own (instanceName), then restart them",
            )


def find_expiring_backlogs(examination: Examination) -> Iterator[Finding]:
    """Finds unread messages that will soon be deleted."""
    for broker, group, stats in examination.progress():
        hours = examination.config_of(broker).get("fileReservedTime", "")
        unread = stats.unread_timestamp
        if not unread or not hours.isdecimal() or examination.is_broadcasting(group):
            continue
        kept = int(hours) * _HOUR
        left = unread + kept - examination.now
        if left < min(_SHORT, kept // 4):
            when = f"may be deleted in {duration_text(left)}" if left > 0 else "may be deleted at any time"
            yield Finding(
                name="backlog-expires",
                subject=f"group {group}",
                evidence=f"{stats.diff_total:,} messages of {stats.rows[0].topic} at {broker.broker_name} are unread, "
                f"the oldest of {time_text(unread)}; files are kept for {hours} h, so that it {when}",
                next_step=f"start more members of {group}, or raise fileReservedTime in the broker's configuration",
            )


def find_refused_sql(examination: Examination) -> Iterator[Finding]:
    """Finds groups that filter by SQL92 at brokers that do not allow it: their pulls fail."""
    for broker in examination.snapshot.brokers:
        if examination.config_of(broker).get("enablePropertyFilter") != "false":
            continue
        for group, known in sorted((broker.consumers or {}).items()):
            for topic, subscription in sorted(known.subscriptions.items()):
                if not subscription.is_tag_type:
                    yield Finding(
                        name="sql-refused",
                        subject=f"group {group}",
                        evidence=f"it filters {topic} by {expression_of(subscription)}, and {broker.broker_name} has "
                        "enablePropertyFilter=false: its pulls are refused",
                        next_step=f"`rmqfast cluster set-config {broker.broker_name} enablePropertyFilter=true --yes`",
                    )


def find_offline_groups(examination: Examination) -> Iterator[Finding]:
    """Finds groups with a backlog and without a member."""
    for group in examination.snapshot.groups:
        progress = group.progress
        if group.members != () or not progress or progress.diff_total <= 0:
            continue
        behind = sorted({row.topic for row in progress if row.diff > 0})
        since = f", the oldest of {time_text(progress.unread_timestamp)}" if progress.unread_timestamp else ""
        backlog = f"{progress.diff_total:,} messages of {_list_text(behind)}"
        yield Finding(
            name="group-offline",
            subject=f"group {group.group}",
            evidence=f"no member is online, and {backlog} are unread{since}",
            next_step=f"start its consumers; if nobody needs it: `rmqfast group delete {group.group}`",
        )


def find_stuck_queues(examination: Examination) -> Iterator[Finding]:
    """Finds queues whose owner has messages, and consumes none of them."""
    late = _late_rows(examination, _STUCK)
    for group in examination.snapshot.groups:
        for client_id, info in examination.members_of(group).items():
            for queue, state in info.queues.items():
                since = state.last_consume_timestamp
                is_still = state.cached_count > 0 and since and since < examination.now - _STUCK
                if is_still and (group.group, queue) in late:
                    yield Finding(
                        name="queue-stuck",
                        subject=f"group {group.group}",
                        evidence=f"{client_id} has {state.cached_count:,} messages of {_name(queue)} in memory, and "
                        f"has consumed none since {time_text(since)}",
                        next_step=f"`rmqfast group stacks {group.group}` shows where its listener waits",
                    )


def find_idle_members(examination: Examination) -> Iterator[Finding]:
    """Finds groups with more members than queues."""
    for group in examination.snapshot.groups:
        members, topics = group.members or (), examination.topics_of(group.group)
        most = max((len(examination.queues_of(topic)) for topic in topics), default=0)
        if group.message_model == BROADCASTING or not most or len(members) <= most:
            continue
        told = examination.members_of(group)
        idle = sorted(name for name, info in told.items() if not any(info.queues_of(topic) for topic in topics))
        named = f": {_list_text(idle)} {_verb(idle, 'has', 'have')} none" if idle else ""
        yield Finding(
            name="idle-members",
            subject=f"group {group.group}",
            evidence=f"{len(members)} members share {most} queues of {_list_text(topics)}{named}",
            next_step=f"give the topic {len(members)} queues or more, or stop {len(members) - most} of the members",
            level=Level.ADVICE,
        )


def find_ownerless_queues(examination: Examination) -> Iterator[Finding]:
    """Finds queues with old unread messages that no member has."""
    late = _late_rows(examination, OLD)
    for group in examination.snapshot.groups:
        told = examination.members_of(group)
        conflicts = {conflict.topic for conflict in group.conflicts or ()}
        if group.message_model == BROADCASTING or len(told) < len(group.members or ()):
            continue
        for topic in sorted(set(examination.topics_of(group.group)) - conflicts):
            owned = [info.queues_of(topic) for info in told.values()]
            # Pull consumers do not tell which queues they have.
            if not owned or None in owned:
                continue
            missing = sorted(set(examination.queues_of(topic)) - {queue for queues in owned for queue in queues or ()})
            missing = [queue for queue in missing if (group.group, queue) in late]
            if missing:
                named = _list_text([_name(queue) for queue in missing])
                yield Finding(
                    name="queue-without-owner",
                    subject=f"group {group.group}",
                    evidence=f"{named} {_verb(missing, 'has', 'have')} unread messages, "
                    f"and none of the {len(told)} members has {_verb(missing, 'it', 'them')}",
                    next_step="see that all members have client ids of their own, and the same allocation strategy",
                )


def find_mixed_members(examination: Examination) -> Iterator[Finding]:
    """Finds groups whose members share queues, or consume them, in different ways."""
    for group in examination.snapshot.groups:
        told = examination.members_of(group)
        for key, words in _ALIKE.items():
            values = {name: _setting(info, key) for name, info in told.items()}
            known = {name: value for name, value in values.items() if value}
            if len(set(known.values())) > 1:
                yield Finding(
                    name="mixed-members",
                    subject=f"group {group.group}",
                    evidence=f"{words}: {', '.join(f'{name} has {value}' for name, value in sorted(known.items()))}",
                    next_step="start all members with the same setting: otherwise queues have two owners or none",
                )


#: Settings that all members of a group must share, by RocketMQ's keys.
_ALIKE = {
    "allocateMessageQueueStrategy": "allocation strategies differ",
    "messageModel": "message models differ",
    "PROP_CONSUMEORDERLY": "some consume in order, others do not",
}


def find_dead_letters(examination: Examination) -> Iterator[Finding]:
    """Finds messages that groups have given up."""
    for dead in examination.dead_letters:
        is_new = dead.last_timestamp > examination.now - _DAY
        topic = DLQ_PREFIX + dead.group
        configs = [(broker.topics or {}).get(topic) for broker in examination.snapshot.brokers]
        is_readable = all(config is None or config.is_readable for config in configs)
        right = "" if is_readable else f"make {topic} readable (perm 6); "
        step = f"`rmqfast group dead-letters {dead.group}` lists them, `rmqfast group resend {dead.group}` resends them"
        yield Finding(
            name="dead-letters",
            subject=f"group {dead.group}",
            evidence=f"{dead.count:,} at {dead.broker_name}, the last one of {time_text(dead.last_timestamp)}",
            next_step=right + step,
            level=Level.PROBLEM if is_new else Level.ADVICE,
        )


def find_retry_storms(examination: Examination) -> Iterator[Finding]:
    """Finds groups that send back half of the messages that they get."""
    for rate in examination.retries:
        if rate.sent_back >= max(_MANY_RETRIES, rate.handed / 2):
            yield Finding(
                name="retry-storm",
                subject=f"group {rate.group}",
                evidence=f"of {rate.topic} at {rate.broker_name} it got {rate.handed:,.0f} messages in a minute, "
                f"and sent {rate.sent_back:,.0f} back",
                next_step="see why its listener fails: `rmqfast explain` of one of them, and the logs of its members",
            )


def _losing_queues(examination: Examination, group: GroupSummary, conflict: SubscriptionConflict) -> list[str]:
    """Returns queues whose owner wants other messages than its broker gives, and those that nobody reads."""
    topic, told = conflict.topic, examination.members_of(group)
    losing: set[MessageQueue] = set()
    owned: set[MessageQueue] = set()
    for info in told.values():
        for queue in info.queues_of(topic) or ():
            owned.add(queue)
            kept = _subscriptions_at(examination, group.group, topic).get(queue.broker_name)
            if meaning_of(kept) != meaning_of(info.subscriptions.get(topic)):
                losing.add(queue)
    tells_all = len(told) == len(group.members or ()) and all(
        info.queues_of(topic) is not None for info in told.values()
    )
    if tells_all:
        losing |= set(examination.queues_of(topic)) - owned
    return [_name(queue) for queue in sorted(losing)]


def _subscriptions_at(examination: Examination, group: str, topic: str) -> dict[str, SubscriptionData]:
    """Returns by which subscription each broker filters for a group."""
    return {
        broker.broker_name: known.subscriptions[topic]
        for broker in examination.snapshot.brokers
        if (known := (broker.consumers or {}).get(group)) is not None and topic in known.subscriptions
    }


def _broker_side(examination: Examination, group: GroupSummary, topic: str) -> str:
    kept = _subscriptions_at(examination, group.group, topic)
    expressions = sorted({expression_of(subscription) for subscription in kept.values()})
    return f"brokers filter by {' or '.join(expressions)}" if expressions else "no broker has a subscription to it"


def _late_rows(examination: Examination, age: int) -> Mapping[tuple[str, MessageQueue], QueueProgress]:
    """Returns queues with a message that has been unread for so long, by group and queue."""
    return {
        (group, row.queue): row
        for _, group, stats in examination.progress()
        for row in stats
        if row.diff > 0 and row.unread_timestamp and row.unread_timestamp < examination.now - age
    }


def _setting(info: ConsumerRunningInfo, key: str) -> str:
    # Java tells an object by its class and its hash, as in "org.apache.AllocateMessageQueueAveragely@5e3a8624".
    return info.properties.get(key, "").partition("@")[0].rpartition(".")[2]


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name}:{queue.queue_id}"


def _list_text(names: Sequence[str]) -> str:
    """Returns names as text. Of many, the first ones and the number of the others."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _verb(subjects: Sequence[object], one: str, several: str) -> str:
    return one if len(subjects) == 1 else several


CHECKS = (
    find_subscription_conflicts,
    find_duplicate_clients,
    find_expiring_backlogs,
    find_refused_sql,
    find_offline_groups,
    find_stuck_queues,
    find_idle_members,
    find_ownerless_queues,
    find_mixed_members,
    find_dead_letters,
    find_retry_storms,
)
