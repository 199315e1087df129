"""Completes snapshots of RocketMQ's brokers with what these tell of one group at a time.

Our brokers tell all of it at once, so they are not asked.

Source: `AdminBrokerProcessor.getConsumerConnectionList`, `AdminBrokerProcessor.getConsumerRunningInfo`,
`AdminBrokerProcessor.queryConsumeTimeSpan`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rmqfast.admin.admin_client import RETRY_PREFIX, SLOW, AdminClient
from rmqfast.admin.consume_stats import ConsumeStats, time_span_question, unread_of_body
from rmqfast.admin.members import PATIENCE, connections_question, running_info_question
from rmqfast.admin.questions import ask_all, body_of
from rmqfast.admin.snapshot import BrokerSnapshot, is_retry
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.consumer_connection import ConsumerConnection
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: Groups whose members could not be had, by name, for each broker.
_PROBLEMS = 3


def with_members(client: AdminClient, brokers: Sequence[BrokerSnapshot]) -> list[BrokerSnapshot]:
    """Adds the online members of groups: the first broker with its retry topic tells of a group."""
    asked: set[str] = set()
    places: list[tuple[BrokerSnapshot, str]] = []
    for broker in brokers:
        if broker.consumers is None:
            groups = {topic.removeprefix(RETRY_PREFIX) for topic in broker.topics or () if is_retry(topic)} - asked
            places += [(broker, group) for group in sorted(groups)]
            asked |= groups
    questions = [connections_question(broker.address, group) for broker, group in places]
    answers = ask_all(client.api, questions, seconds=client.timeout * SLOW)
    online: dict[str, dict[str, ConsumerConnection]] = {broker.address: {} for broker, _ in places}
    problems: dict[str, list[str]] = {broker.address: [] for broker, _ in places}
    for (broker, group), answer in zip(places, answers, strict=True):
        try:
            online[broker.address][group] = ConsumerConnection.of_body(body_of(answer))
        except RemotingError as error:
            if not isinstance(error, ResponseError) or error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                problems[broker.address].append(f"members of group {group}: {error}")
    return [
        _with_problems(replace(broker, consumers=online.get(broker.address, broker.consumers)), problems)
        for broker in brokers
    ]


def with_subscriptions(client: AdminClient, brokers: Sequence[BrokerSnapshot]) -> list[BrokerSnapshot]:
    """Adds what members subscribe to, asking those of groups with several. Unknown if one of them does not answer."""
    places = [
        (broker.address, group, client_id)
        for broker in brokers
        for group, known in (broker.consumers or {}).items()
        for client_id in known.client_ids
        if known.member_subscriptions is None and len(known.client_ids) > 1
    ]
    questions = [running_info_question(*place) for place in places]
    answers = ask_all(client.api, questions, seconds=client.timeout * PATIENCE)
    told: dict[tuple[str, str], dict[str, Mapping[str, SubscriptionData]]] = {}
    problems: dict[str, list[str]] = {}
    for (address, group, client_id), answer in zip(places, answers, strict=True):
        try:
            info = ConsumerRunningInfo.of_body(body_of(answer))
            told.setdefault((address, group), {})[client_id] = info.subscriptions
        except RemotingError as error:
            problems.setdefault(address, []).append(f"conflicts of group {group}: {client_id} does not tell: {error}")

    def complete(broker: BrokerSnapshot) -> Mapping[str, ConsumerConnection] | None:
        return broker.consumers and {
            group: _with_own(known, told.get((broker.address, group), {})) for group, known in broker.consumers.items()
        }

    return [_with_problems(replace(broker, consumers=complete(broker)), problems) for broker in brokers]


def with_unread(client: AdminClient, brokers: Sequence[BrokerSnapshot]) -> list[BrokerSnapshot]:
    """Adds since when messages have waited, asking for each group and topic with a backlog; unknown if not told."""
    places = [
        (broker.address, group, stats.rows[0].topic)
        for broker in brokers
        for group, topics in (broker.progress or {}).items()
        for stats in topics
        if stats.unread_timestamp is None
    ]
    questions = [time_span_question(*place) for place in places]
    answers = ask_all(client.api, questions, seconds=client.timeout * SLOW)
    told: dict[tuple[str, str, str], int] = {}
    problems: dict[str, list[str]] = {}
    for place, answer in zip(places, answers, strict=True):
        try:
            told[place] = unread_of_body(body_of(answer))
        except RemotingError as error:
            address, group, topic = place
            problems.setdefault(address, []).append(f"lag in time of group {group} in {topic}: {error}")

    def complete(address: str, group: str, stats: ConsumeStats) -> ConsumeStats:
        since = told.get((address, group, stats.rows[0].topic)) if stats.rows else None
        return stats if since is None else stats.with_unread(since)

    def progress_of(broker: BrokerSnapshot) -> Mapping[str, tuple[ConsumeStats, ...]] | None:
        return broker.progress and {
            group: tuple(complete(broker.address, group, each) for each in topics)
            for group, topics in broker.progress.items()
        }

    return [_with_problems(replace(broker, progress=progress_of(broker)), problems) for broker in brokers]


def _with_own(known: ConsumerConnection, own: Mapping[str, Mapping[str, SubscriptionData]]) -> ConsumerConnection:
    """Returns a group with its members' own subscriptions, if all of them are known."""
    if known.member_subscriptions is not None:
        return known
    if len(known.client_ids) == 1:
        # The broker keeps the newest subscription of the group's members, which is that of the only one.
        own = {known.client_ids[0]: known.subscriptions}
    return replace(known, member_subscriptions=own) if len(own) == len(set(known.client_ids)) else known


def _with_problems(broker: BrokerSnapshot, problems: Mapping[str, Sequence[str]]) -> BrokerSnapshot:
    """Adds the first problems at a broker, and the number of the others: it may have thousands of groups."""
    own = problems.get(broker.address, ())
    texts = [f"{broker.broker_name}, {problem}" for problem in own[:_PROBLEMS]]
    if len(own) > _PROBLEMS:
        texts.append(f"{broker.broker_name}: and {len(own) - _PROBLEMS} more like the last one")
    return replace(broker, problems=(*broker.problems, *texts))
