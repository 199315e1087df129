"""A cluster at one moment: what its brokers tell of topics, groups, offsets and of themselves.

Source: `ConsumeStatsList`, `TopicConfigSerializeWrapper`, `SubscriptionGroupWrapper`,
`ConsumerOffsetSerializeWrapper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from rmqfast.admin.admin_client import RETRY_PREFIX
from rmqfast.admin.consume_stats import ConsumeStats
from rmqfast.client.consumer.subscription import SubscriptionConflict, conflicts_of
from rmqfast.remoting.protocol.consumer_connection import Connection, ConsumerConnection
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig, built_in_groups

BUILT_IN = frozenset(group.group_name for group in built_in_groups())


class MinuteStats(NamedTuple):
    """A statistic of the last minute: what was counted, and how much of it a second."""

    sum: float
    tps: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerSnapshot:
    """The tables of a broker. A table is `None` if it was not asked for, or not told; `problems` says why.

    Attributes:
        cluster: Name of its cluster.
        broker_name: Name of the broker; the answers are its master's, or a slave's if there is no master.
        address: Address that was asked, `host:port`.
        status: Runtime status under RocketMQ's names: rates, offsets, disks.
        topics: Topics by name.
        groups: Settings of consumer groups by name.
        offsets: Offsets by queue id, for each group and topic: `offsets[group, topic][queue_id]`.
        progress: Progress of each group, one entry for each of its topics.
        consumers: Online groups with their members. Brokers of RocketMQ tell them for one group at a time only, so
            that a snapshot has them if asked for.
        producers: Numbers of online producers by group. Only our brokers tell them, `ends` and `stats` in a snapshot.
        ends: Number of messages that each topic ever got: the ends of its queues, added up.
        stats: Statistics of the last minute by RocketMQ's names and keys, as `stats["TOPIC_PUT_NUMS"]["orders"]`.
        problems: Reasons for missing tables.
    """

    cluster: str
    broker_name: str
    address: str
    status: Mapping[str, str] | None = None
    topics: Mapping[str, TopicConfig] | None = None
    groups: Mapping[str, SubscriptionGroupConfig] | None = None
    offsets: Mapping[tuple[str, str], Mapping[int, int]] | None = None
    progress: Mapping[str, tuple[ConsumeStats, ...]] | None = None
    consumers: Mapping[str, ConsumerConnection] | None = None
    producers: Mapping[str, int] | None = None
    ends: Mapping[str, int] | None = None
    stats: Mapping[str, Mapping[str, MinuteStats]] | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicSummary:
    """A topic on all brokers of a cluster.

    Attributes:
        brokers: Names of the brokers that have the topic.
        read_queues: Queues for consumers, on all brokers together.
        write_queues: Queues for producers, on all brokers together.
        perm: Sum of 4 (read), 2 (write) and 1 (new topics inherit from it), if all brokers agree; otherwise `None`.
    """

    topic: str
    brokers: tuple[str, ...]
    read_queues: int
    write_queues: int
    perm: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupSummary:
    """A consumer group on all brokers of a cluster. What no broker told is `None`.

    Attributes:
        progress: Its offsets and the ends of its queues.
        members: Online members by client id, without doubles.
        consume_type: `CONSUME_PASSIVELY` for push, `CONSUME_ACTIVELY` for pull and lite pull; `None` while offline.
        message_model: `CLUSTERING` or `BROADCASTING`; `None` while offline.
        conflicts: Topics to which its members subscribe differently, which loses messages.
    """

    group: str
    progress: ConsumeStats | None = None
    members: tuple[Connection, ...] | None = None
    consume_type: str | None = None
    message_model: str | None = None
    conflicts: tuple[SubscriptionConflict, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A cluster at one moment, as far as its brokers told.

    Attributes:
        taken_at: Time of the questions, in milliseconds since 1970.
        brokers: Each broker's tables, sorted by name.

    Example:
        >>> import rmqfast
        >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
        ...     admin.create_topic("orders", queues=2)
        ...     topics = {topic.topic: topic for topic in admin.snapshot().topics}
        >>> topics["orders"].brokers, topics["orders"].read_queues
        (('broker-a',), 2)
    """

    taken_at: int
    brokers: tuple[BrokerSnapshot, ...] = field(repr=False)

    @property
    def problems(self) -> tuple[str, ...]:
        """The tables that are missing, and why."""
        if not self.brokers:
            return ("the name server knows no broker: start one, and wait a moment",)
        return tuple(problem for broker in self.brokers for problem in broker.problems)

    @cached_property
    def topics(self) -> tuple[TopicSummary, ...]:
        """All topics, also system, retry and dead-letter topics, sorted by name."""
        by_name: dict[str, list[tuple[str, TopicConfig]]] = {}
        for broker in self.brokers:
            for name, config in (broker.topics or {}).items():
                by_name.setdefault(name, []).append((broker.broker_name, config))
        return tuple(_topic_summary(name, by_name[name]) for name in sorted(by_name))

    @cached_property
    def groups(self) -> tuple[GroupSummary, ...]:
        """All groups that were configured or have begun, without built-in ones, sorted by name."""
        return tuple(self._group_summary(name) for name in sorted(self._group_names()))

    def groups_of(self, topic: str) -> tuple[GroupSummary, ...]:
        """Returns the groups that have offsets in a topic or subscribe to it, with their progress in it, by name."""
        subscribed = {
            group
            for broker in self.brokers
            for group, known in (broker.consumers or {}).items()
            if topic in known.subscriptions
        }
        groups = [replace(group, progress=self._progress(group.group, topic)) for group in self.groups]
        return tuple(group for group in groups if group.progress or group.group in subscribed)

    def _progress(self, group: str, topic: str | None = None) -> ConsumeStats | None:
        told = [broker.progress for broker in self.brokers if broker.progress is not None]
        stats = [each for progress in told for each in progress.get(group, ())]
        in_topic = [each for each in stats if topic is None or (each.rows and each.rows[0].topic == topic)]
        return ConsumeStats.of_brokers(in_topic) if told else None

    def _group_names(self) -> set[str]:
        configured = {name for broker in self.brokers for name in broker.groups or ()} - BUILT_IN
        topics = {name for broker in self.brokers for name in broker.topics or ()}
        # Members make the retry topic with their first heartbeat.
        return configured | {name.removeprefix(RETRY_PREFIX) for name in topics if is_retry(name)}

    def _group_summary(self, group: str) -> GroupSummary:
        tables = [broker.consumers for broker in self.brokers if broker.consumers is not None]
        known = [table[group] for table in tables if group in table]
        members = {each.client_id: each for one in known for each in one.connections}
        return GroupSummary(
            group=group,
            progress=self._progress(group),
            members=tuple(members[name] for name in sorted(members)) if tables else None,
            consume_type=known[0].consume_type if known else None,
            message_model=known[0].message_model if known else None,
            conflicts=_conflicts(group, known) if tables else None,
        )


def _conflicts(group: str, known: list[ConsumerConnection]) -> tuple[SubscriptionConflict, ...] | None:
    """Returns the conflicts among the members' own subscriptions, or `None` if a broker does not tell these."""
    own: dict[str, Mapping[str, SubscriptionData]] = {}
    for each in known:
        if each.member_subscriptions is None:
            return None
        own |= each.member_subscriptions
    return tuple(conflicts_of(group, own))


def is_retry(topic: str) -> bool:
    return topic.startswith(RETRY_PREFIX)


def _topic_summary(name: str, configs: list[tuple[str, TopicConfig]]) -> TopicSummary:
    perms = {config.perm for _, config in configs}
    return TopicSummary(
        topic=name,
        brokers=tuple(broker_name for broker_name, _ in configs),
        read_queues=sum(config.read_queue_nums for _, config in configs),
        write_queues=sum(config.write_queue_nums for _, config in configs),
        perm=perms.pop() if len(perms) == 1 else None,
    )
