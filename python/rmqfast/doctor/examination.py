"""Facts about a cluster by which the doctor's checks decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rmqfast.admin import BrokerRow, BrokerSnapshot, ConsumerRunningInfo, ConsumeStats, GroupSummary, Snapshot
from rmqfast.admin.admin_client import RETRY_PREFIX
from rmqfast.client.instance.api import ClusterInfo
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.consumer_connection import BROADCASTING

#: Age of an unread message from which on a group is late, in milliseconds.
OLD = 60_000
#: Half messages that are read at each broker.
MOST_HALF_MESSAGES = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class NameServerAnswer:
    """The brokers and topics that one name server knows."""

    address: str
    brokers: ClusterInfo
    topics: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedPort:
    """A port of a broker that accepts no connection.

    `purpose` is "vip" for the second port of clients, "ha" for that of slaves.
    """

    broker: BrokerRow
    address: str
    purpose: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetterCount:
    """The dead letters of a group at one broker, and when the last one came, in milliseconds since 1970."""

    broker_name: str
    group: str
    count: int
    last_timestamp: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HalfMessage:
    """A message of a transaction that is neither committed nor rolled back.

    Attributes:
        born_timestamp: Time of the send, in milliseconds since 1970.
        checks: How often the broker asked the producer's group, or tried to.
    """

    broker_name: str
    topic: str
    producer_group: str
    born_timestamp: int
    checks: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryRate:
    """The messages that a group got of a topic in the last minute, and those of them that it sent back."""

    broker_name: str
    topic: str
    group: str
    handed: float
    sent_back: float


@dataclass(frozen=True, kw_only=True, slots=True)
class NewestMessage:
    """When the last message of a queue was born by its producer's clock, and stored by its broker's."""

    topic: str
    broker_name: str
    born_host: str
    born_timestamp: int
    store_timestamp: int


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Facts about a cluster at one moment.

    Attributes:
        snapshot: Topics, groups, offsets and members, as the masters tell them.
        brokers: All brokers that the name servers know, also slaves.
        statuses: Runtime status of each broker that answers.
        configs: Configuration of each broker that answers.
        unreachable: Errors of brokers that do not answer.
        name_servers: Answers of name servers, one each.
        silent_name_servers: Errors of name servers that do not answer, by address.
        later_brokers: All brokers that a name server told again later, also with other addresses.
        closed_ports: Ports that should accept connections.
        members: What members of groups say of themselves, by group and client id.
        dead_letters: Dead letters of groups.
        retries: Rates at which groups send messages back, where they do.
        half_messages: Messages of open transactions.
        producers: Groups of producers of these messages that are online.
        newest: Last messages of some queues.
        asked_at: Time at which brokers were asked for `statuses`, in milliseconds since 1970.
        answered_at: Time at which the last of them had answered.
    """

    snapshot: Snapshot
    brokers: tuple[BrokerRow, ...] = ()
    statuses: Mapping[BrokerRow, Mapping[str, str]] = field(default_factory=dict)
    configs: Mapping[BrokerRow, Mapping[str, str]] = field(default_factory=dict)
    unreachable: Mapping[BrokerRow, str] = field(default_factory=dict)
    name_servers: tuple[NameServerAnswer, ...] = ()
    silent_name_servers: Mapping[str, str] = field(default_factory=dict)
    later_brokers: tuple[BrokerRow, ...] = ()
    closed_ports: tuple[ClosedPort, ...] = ()
    members: Mapping[tuple[str, str], ConsumerRunningInfo] = field(default_factory=dict)
    dead_letters: tuple[DeadLetterCount, ...] = ()
    retries: tuple[RetryRate, ...] = ()
    half_messages: tuple[HalfMessage, ...] = ()
    producers: frozenset[str] = frozenset()
    newest: tuple[NewestMessage, ...] = ()
    asked_at: int = 0
    answered_at: int = 0

    @cached_property
    def _groups(self) -> Mapping[str, str | None]:
        return {group.group: group.message_model for group in self.snapshot.groups}

    @property
    def now(self) -> int:
        """Time of the snapshot, in milliseconds since 1970."""
        return self.snapshot.taken_at

    @property
    def masters(self) -> list[BrokerRow]:
        return [broker for broker in self.brokers if broker.is_master]

    def is_ours(self, row: BrokerRow) -> bool:
        """Whether a broker is one of rmqfast, which tells more than RocketMQ's do."""
        return any(
            broker.stats is not None for broker in self.snapshot.brokers if broker.broker_name == row.broker_name
        )

    def is_broadcasting(self, group: str) -> bool:
        """Whether each member of a group gets all messages, and keeps offsets of its own."""
        return self._groups.get(group) == BROADCASTING

    def topics_of(self, group: str) -> list[str]:
        """Returns the topics to which a group subscribes, as brokers know, without its retry topic."""
        topics = {
            topic
            for broker in self.snapshot.brokers
            if (known := (broker.consumers or {}).get(group)) is not None
            for topic in known.subscriptions
        }
        return sorted(topic for topic in topics if not topic.startswith(RETRY_PREFIX))

    def queues_of(self, topic: str) -> list[MessageQueue]:
        """Returns the queues of a topic that consumers may read."""
        return [
            MessageQueue(topic, broker.broker_name, number)
            for broker in self.snapshot.brokers
            if (config := (broker.topics or {}).get(topic)) is not None and config.is_readable
            for number in range(config.read_queue_nums)
        ]

    def config_of(self, snapshot: BrokerSnapshot) -> Mapping[str, str]:
        """Returns the configuration of the broker that a snapshot's tables are of; empty if it is unknown."""
        found = (config for row, config in self.configs.items() if row.broker_name == snapshot.broker_name)
        return next(found, {})

    def members_of(self, group: GroupSummary) -> dict[str, ConsumerRunningInfo]:
        """Returns what the members of a group say of themselves, by client id; only of those that answered."""
        return {
            member.client_id: self.members[group.group, member.client_id]
            for member in group.members or ()
            if (group.group, member.client_id) in self.members
        }

    def progress(self) -> Iterator[tuple[BrokerSnapshot, str, ConsumeStats]]:
        """Yields the progress of each group in each topic of each broker."""
        for broker in self.snapshot.brokers:
            for group, topics in (broker.progress or {}).items():
                for stats in topics:
                    if stats.rows:
                        yield broker, group, stats
