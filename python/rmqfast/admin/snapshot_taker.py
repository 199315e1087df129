"""Takes snapshots of clusters: by five questions to each broker, as a broker tells each table in one answer.

Source: `AdminBrokerProcessor.getAllTopicConfig`, `AdminBrokerProcessor.getAllSubscriptionGroup`,
`AdminBrokerProcessor.getAllConsumerOffset`, `AdminBrokerProcessor.fetchAllConsumeStatsInBroker`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from itertools import product
from typing import Any, NamedTuple

from rmqfast.admin.admin_client import SLOW, AdminClient
from rmqfast.admin.clusters import status_of_body
from rmqfast.admin.consume_stats import ConsumeStats
from rmqfast.admin.group_answers import with_members, with_subscriptions, with_unread
from rmqfast.admin.groups import configs_of_body
from rmqfast.admin.questions import Answer, Question, ask_in_turn, body_of
from rmqfast.admin.snapshot import BrokerSnapshot, MinuteStats, Snapshot
from rmqfast.admin.topics import MAX_QUEUES, MAX_STATS_BYTES, topic_configs_of_body
from rmqfast.errors import ArgumentError, RemotingError
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.consumer_connection import ConsumerConnection
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.store.config.offsets import parse_key

#: Tables of a snapshot.
TABLES = ("status", "topics", "groups", "offsets", "progress")
_MOST_GROUPS = 1_000_000
_DETAILS = ("consumerTable", "endTable", "producerTable", "statsTable")


class SnapshotTaker:
    """`admin.snapshot`: takes snapshots of a cluster."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def snapshot(
        self,
        *,
        cluster: str | None = None,
        tables: Collection[str] = TABLES,
        members: bool = False,
        unread: bool = False,
    ) -> Snapshot:
        """Returns what the brokers of a cluster tell of topics, groups, offsets and of themselves, at one moment.

        Sends a request for each table to each broker, to all at the same time. A broker that does not answer is no
        error: what it did not tell is in `problems`.

        Args:
            cluster: Default: all clusters.
            tables: Some of "status", "topics", "groups", "offsets" and "progress".
            members: Whether to ask for the online members of groups, too, and members for what they subscribe to. Our
                brokers tell both with "progress"; those of RocketMQ get a request for each group of "topics", and one
                for each member of a group with several.
            unread: Whether to ask for the times of the oldest unread messages, too. Our brokers tell them with
                "progress"; those of RocketMQ get a request for each group and topic with a backlog.

        Raises:
            ArgumentError: There is no such table.
            ClientError: The cluster does not exist.
            RemotingError: No name server answers.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     admin.create_group("billing")
            ...     [group.group for group in admin.snapshot().groups]
            ['billing']
        """
        if unknown := sorted(set(tables) - set(TABLES)):
            raise ArgumentError(f"tables: expected some of {', '.join(TABLES)}, got {unknown[0]!r}")
        wanted = [table for table in _TABLES if table.name in tables]
        taken_at = time.time_ns() // 1_000_000
        brokers = [broker for broker in self._client.brokers_in(cluster) if broker.addresses]
        # A broker is asked at its master, or at a slave if it has no master.
        addresses = dict(self._client.addresses(brokers))
        # The slowest table comes last: the others are read until then.
        questions = [
            Question(addresses[broker.broker_name], table.code, table.ext_fields)
            for table in wanted
            for broker in brokers
        ]
        answers = ask_in_turn(self._client.api, questions, seconds=self._client.timeout * SLOW)
        collected = [_BrokerTables() for _ in brokers]
        for table, of_broker in product(wanted, collected):
            of_broker.add(table, next(answers))
        told = [
            _broker_snapshot(broker, addresses[broker.broker_name], of_broker)
            for broker, of_broker in zip(brokers, collected, strict=True)
        ]
        if members:
            told = with_subscriptions(self._client, with_members(self._client, told))
        if unread:
            told = with_unread(self._client, told)
        return Snapshot(taken_at=taken_at, brokers=tuple(told))


def offsets_of_body(body: bytes) -> dict[tuple[str, str], Mapping[int, int]]:
    """Parses offsets by queue id, for each group and topic. Raises `ResponseError` for a field of the wrong type."""
    table = JsonObject.of_body(body, most=MAX_STATS_BYTES).object("offsetTable")
    keys = [] if table is None else [(key, parse_key(key)) for key in table.names()]
    return {
        (names[1], names[0]): table.member(key).numbers_by_number(most=MAX_QUEUES)
        for key, names in keys
        if table is not None and names is not None
    }


def minute_stats_of_body(body: bytes) -> MinuteStats:
    """Parses the answer to request 315. Raises `ResponseError` if it is malformed."""
    minute = JsonObject.of_body(body).member("statsMinute")
    return MinuteStats(minute.fraction("sum"), minute.fraction("tps"))


def _progress_of_body(body: bytes) -> dict[str, Any]:
    """Parses the answer to request 317. Only our brokers tell all of it; see `BrokerDetails`."""
    members = JsonObject.of_body(body, most=MAX_STATS_BYTES)
    consumers, ends, producers, stats = (members.object(name) for name in _DETAILS)
    progress: dict[str, tuple[ConsumeStats, ...]] = {}
    for entry in members.objects("consumeStatsList", most=_MOST_GROUPS):
        for group in entry.names():
            rows = entry.objects(group, most=_MOST_GROUPS)
            progress[group] = tuple(ConsumeStats.of_json(row, is_detailed=consumers is not None) for row in rows)
    fields: dict[str, Any] = {"progress": progress}
    if consumers is not None:
        fields["consumers"] = {name: ConsumerConnection.of_json(consumers.member(name)) for name in consumers.names()}
    if ends is not None:
        fields["ends"] = {name: ends.number(name, 0) for name in ends.names()}
    if producers is not None:
        fields["producers"] = {name: producers.number(name, 0) for name in producers.names()}
    if stats is not None:
        fields["stats"] = {name: _minute_stats(stats.member(name)) for name in stats.names()}
    return fields


def _minute_stats(table: JsonObject) -> dict[str, MinuteStats]:
    rows = {key: table.member(key) for key in table.names()}
    return {key: MinuteStats(row.fraction("sum"), row.fraction("tps")) for key, row in rows.items()}


class _Table(NamedTuple):
    """A table, the request for it, and the fields of `BrokerSnapshot` that its answer has."""

    name: str
    code: int
    parse: Callable[[bytes], dict[str, Any]]

    @property
    def ext_fields(self) -> dict[str, object]:
        # RocketMQ's brokers ignore the second field, which they do not know.
        return {"isOrder": False, "isDetailed": True} if self.code == RequestCode.GET_BROKER_CONSUME_STATS else {}


_TABLES = (
    _Table("status", RequestCode.GET_BROKER_RUNTIME_INFO, lambda body: {"status": status_of_body(body)}),
    _Table("topics", RequestCode.GET_ALL_TOPIC_CONFIG, lambda body: {"topics": topic_configs_of_body(body)}),
    _Table("groups", RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, lambda body: {"groups": configs_of_body(body)}),
    _Table("offsets", RequestCode.GET_ALL_CONSUMER_OFFSET, lambda body: {"offsets": offsets_of_body(body)}),
    _Table("progress", RequestCode.GET_BROKER_CONSUME_STATS, _progress_of_body),
)


class _BrokerTables:
    """Tables that a broker told, and the reasons why it did not tell others."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.problems: dict[str, list[str]] = {}

    def add(self, table: _Table, answer: Answer) -> None:
        try:
            self.fields |= table.parse(body_of(answer))
        except RemotingError as error:
            self.problems.setdefault(str(error), []).append(table.name)


def _broker_snapshot(broker: BrokerData, address: str, told: _BrokerTables) -> BrokerSnapshot:
    name = broker.broker_name
    texts = [f"{name} at {address} does not tell {', '.join(names)}: {why}" for why, names in told.problems.items()]
    return BrokerSnapshot(
        cluster=broker.cluster, broker_name=name, address=address, problems=tuple(texts), **told.fields
    )
