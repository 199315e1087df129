"""Consumer groups: creates, changes, deletes and lists them, and reports their consumers and progress.

Source: `DefaultMQAdminExtImpl`, `UpdateSubGroupSubCommand`, `DeleteSubscriptionGroupCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, AdminClient
from rmqfast.admin.consume_stats import ConsumeStats, stats_at
from rmqfast.admin.members import Members, conflicts_among, members_at, running_info_at
from rmqfast.admin.topics import MAX_STATS_BYTES, Topics
from rmqfast.client.consumer.subscription import SubscriptionConflict
from rmqfast.client.instance.validators import check_group
from rmqfast.errors import ArgumentError, ClientError, RemotingError, ResponseError
from rmqfast.remoting import RequestCode, fastjson
from rmqfast.remoting.codes import ResponseCode
from rmqfast.remoting.protocol.consumer_connection import (
    Connection,
    ConsumerConnection,
    connections_of,
    producers_of_body,
)
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.store.config import SubscriptionGroupConfig

_NOBODY = "see that it runs and uses this cluster: brokers know it from its first heartbeat on"
_NO_OFFSETS = "members tell their offsets within five seconds, once they have queues; those of a broadcast tell none"


class Groups:
    """`admin.groups`: creates, changes, deletes and describes consumer groups."""

    def __init__(self, client: AdminClient, topics: Topics) -> None:
        self._client, self._topics = client, topics

    def create(self, /, group: str | SubscriptionGroupConfig, *, cluster: str | None = None, **settings: Any) -> None:
        """Creates a group on the masters of a cluster, or replaces the settings of an existing group.

        Args:
            group: Name of the group, or a complete configuration.
            cluster: Default: all clusters.
            **settings: Fields of `SubscriptionGroupConfig`, as `retry_max_times=3`.

        Raises:
            ClientError: The name is illegal, or the cluster does not exist.
            ArgumentError: A setting does not exist.
        """
        config = group if isinstance(group, SubscriptionGroupConfig) else _config(group, settings)
        check_group(config.group_name)
        for broker in self._client.masters(cluster):
            put_group(self._client, broker.address, config)

    def update(self, /, group: str, *, cluster: str | None = None, **settings: Any) -> None:
        """Changes some settings of a group on each master. The other settings stay.

        `settings` are fields of `SubscriptionGroupConfig`, as `retry_max_times=3`. Default of `cluster`: all.

        Raises:
            ClientError: 26, no broker has the group.
            ArgumentError: A setting does not exist.
        """
        is_there = False
        for broker in self._client.masters(cluster):
            config = configs_at(self._client, broker.address).get(group)
            if config is not None:
                is_there = True
                put_group(self._client, broker.address, _config(group, {**_settings(config), **settings}))
        if not is_there:
            raise ClientError(
                f"subscription group [{group}] does not exist",
                response_code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                next_step=f"groups.create({group!r}) makes it",
            )

    def delete(self, group: str, *, cluster: str | None = None, remove_offsets: bool = False) -> None:
        """Deletes a group from the masters of a cluster, with its retry and dead-letter topics.

        Without `remove_offsets`, a later group of the same name resumes at the old offsets.
        """
        for broker in self._client.masters(cluster):
            delete_group(self._client, broker.address, group, remove_offsets=remove_offsets)
        # Brokers remove only the group itself; mqadmin deletes these topics, too.
        for topic in (RETRY_PREFIX + group, DLQ_PREFIX + group):
            self._topics.delete(topic, cluster=cluster)

    def all(self, *, cluster: str | None = None) -> dict[str, SubscriptionGroupConfig]:
        """Returns all groups by name, also built-in ones. If brokers differ, the first broker's settings count."""
        tables = [configs_at(self._client, broker.address) for broker in self._client.masters(cluster)]
        # Reversed, so that the first broker's settings win.
        return dict(sorted({name: config for table in reversed(tables) for name, config in table.items()}.items()))

    def progress(self, group: str, topic: str | None = None) -> ConsumeStats:
        """Returns how far a group has read its queues on all brokers.

        With `topic`, returns the progress in that topic only, which also works for a group without a retry topic.
        `ResponseError` 17 if no member ever connected, `ClientError` 206 if the group has no offsets.
        """
        answers = [stats_at(self._client, each, group, topic) for each in self._client.brokers_of_group(group, topic)]
        stats = ConsumeStats.of_brokers(answers)
        if not stats:
            code = ResponseCode.CONSUMER_NOT_ONLINE
            raise ClientError(f"the group {group} has no offsets", response_code=code, next_step=_NO_OFFSETS)
        return stats

    def connections(self, group: str) -> ConsumerConnection:
        """Returns the online consumers of a group, according to the first broker with its retry topic.

        Raises `ResponseError` 206 if no member is online, 17 if the group has no retry topic.
        """
        for broker in self._client.brokers_of_group(group)[:1]:
            members = members_at(self._client, broker.address, group)
            if members.connections:
                return members
        raise ClientError(f"no member of the group {group} is online", next_step=_NOBODY)

    def producer_connections(self, group: str, topic: str) -> list[Connection]:
        """Returns the online producers of a group, according to the first broker of a topic.

        Raises `ResponseError` 1 if the broker knows no producer of the group, 17 if the topic does not exist.
        """
        code, fields = RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": group}
        for broker in self._client.brokers_of(topic)[:1]:
            connections = connections_of(self._client.ask(broker.address, code, fields).body)
            if connections:
                return list(connections)
        raise ClientError(f"no producer of the group {group} is online", next_step=_NOBODY)

    def producers(self) -> dict[str, list[Connection]]:
        """Returns the online producers of all brokers, by group, without doubles.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     with rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
            ...         sent = producer.send(rmqfast.Message("orders", b"paid"))
            ...         sorted(admin.groups.producers())
            ['shop']
        """
        by_group: dict[str, dict[str, Connection]] = {}
        for broker in self._client.masters():
            answer = self._client.ask(broker.address, RequestCode.GET_ALL_PRODUCER_INFO)
            for group, producers in producers_of_body(answer.body).items():
                by_group.setdefault(group, {}).update({each.client_id: each for each in producers})
        return {group: list(by_group[group].values()) for group in sorted(by_group) if by_group[group]}

    def running_info(self, group: str, client_id: str, *, jstack: bool = False) -> ConsumerRunningInfo:
        """Returns the state of a consumer. Raises `ResponseError`: 1 if it is offline, 207 if it does not answer."""
        brokers = self._client.brokers_of_group(group)
        for broker in brokers[:-1]:  # a client connects only to the brokers of its topics
            try:
                return running_info_at(self._client, broker.address, group, client_id, jstack=jstack)
            except ResponseError as error:
                if "not online" not in error.remark:
                    raise
        return running_info_at(self._client, brokers[-1].address, group, client_id, jstack=jstack)

    def running_infos(self, group: str, *, jstack: bool = False) -> Mapping[str, ConsumerRunningInfo | RemotingError]:
        """Returns the state of each online consumer by client id, or the error that came instead.

        All are asked at the same time. Raises `ClientError` 206 if no member is online, `ResponseError` 17 if the group
        has no retry topic.
        """
        infos = Members(self._client, group, jstack=jstack).infos(self._client.brokers_of_group(group))
        if not infos:
            code = ResponseCode.CONSUMER_NOT_ONLINE
            raise ClientError(f"no member of the group {group} is online", response_code=code, next_step=_NOBODY)
        return infos

    def subscription_conflicts(self, group: str | None = None) -> list[SubscriptionConflict]:
        """Returns topics that a group's consumers subscribe to differently, which loses messages.

        Without `group`, checks all groups with a retry topic. `ResponseError` 17 if no member ever connected.
        """
        groups = self._groups_with_retries() if group is None else [group]
        return [conflict for each in groups for conflict in self._conflicts_of(each)]

    def of_topic(self, topic: str) -> list[str]:
        """Returns the groups that consume a topic now or have offsets in it. `ResponseError` 17 means an unknown topic.

        RocketMQ 5.3.3 returns the topic's name instead of groups that are online without offsets; then all groups are
        searched.
        """
        groups = {
            group
            for broker in self._client.brokers_of(topic)
            for group in consumers_at(self._client, broker.address, topic)
        }
        if topic not in groups:
            return sorted(groups)
        all_groups = self._groups_with_retries()
        online = {group for group in all_groups if self._subscribes(group, topic)}
        # Keep the topic's name if a group really has that name.
        return sorted((groups - {topic}) | online | (groups & set(all_groups)))

    def _subscribes(self, group: str, topic: str) -> bool:
        try:
            return topic in self.connections(group).subscriptions
        except (ResponseError, ClientError):
            return False  # no member is online

    def _groups_with_retries(self) -> list[str]:
        # Like mqadmin, find groups by their retry topics; a group that nobody joined has none.
        topics = self._topics.all()
        return sorted(topic.removeprefix(RETRY_PREFIX) for topic in topics if topic.startswith(RETRY_PREFIX))

    def _conflicts_of(self, group: str) -> list[SubscriptionConflict]:
        infos = Members(self._client, group).infos(self._client.brokers_of_group(group))
        return conflicts_among(group, infos)


def put_group(client: AdminClient, address: str, config: SubscriptionGroupConfig) -> None:
    """Creates a group at a broker, or replaces its settings."""
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    client.ask(address, code, None, fastjson.encode(config.to_json()))


def delete_group(client: AdminClient, address: str, group: str, *, remove_offsets: bool) -> None:
    """Deletes a group from a broker. Its retry and dead-letter topics stay."""
    fields = {"groupName": group, "removeOffset": remove_offsets, "cleanOffset": remove_offsets}
    client.ask(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)


def configs_at(client: AdminClient, address: str) -> dict[str, SubscriptionGroupConfig]:
    return configs_of_body(client.ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, slow=True).body)


def configs_of_body(body: bytes) -> dict[str, SubscriptionGroupConfig]:
    """Parses groups by name. Raises `ResponseError` if a JSON field has the wrong type."""
    table = JsonObject.of_body(body, most=MAX_STATS_BYTES).object("subscriptionGroupTable")
    names = [] if table is None else table.names()
    return {name: _config_of(name, table.member(name)) for name in names if table is not None}


def consumers_at(client: AdminClient, address: str, topic: str) -> tuple[str, ...]:
    body = client.ask(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": topic}).body
    return JsonObject.of_body(body).texts("groupList", most=1_000_000)


def _config_of(name: str, members: JsonObject) -> SubscriptionGroupConfig:
    default = SubscriptionGroupConfig(group_name=name)
    return SubscriptionGroupConfig(
        group_name=name,
        consume_enable=members.flag("consumeEnable", default=True),
        consume_from_min_enable=members.flag("consumeFromMinEnable", default=True),
        consume_broadcast_enable=members.flag("consumeBroadcastEnable", default=True),
        notify_consumer_ids_changed_enable=members.flag("notifyConsumerIdsChangedEnable", default=True),
        retry_queue_nums=members.number("retryQueueNums", default.retry_queue_nums),
        retry_max_times=members.number("retryMaxTimes", default.retry_max_times),
        broker_id=members.number("brokerId", default.broker_id),
        which_broker_when_consume_slowly=members.number(
            "whichBrokerWhenConsumeSlowly", default.which_broker_when_consume_slowly
        ),
    )


def _config(group: str, settings: dict[str, Any]) -> SubscriptionGroupConfig:
    try:
        return SubscriptionGroupConfig(group_name=group, **settings)
    except TypeError as error:
        names = ", ".join(sorted(set(_settings(SubscriptionGroupConfig(group_name=group))) - {"other"}))
        raise ArgumentError(f"expected some of {names}, got {', '.join(settings)}") from error


def _settings(config: SubscriptionGroupConfig) -> dict[str, Any]:
    return {name: value for name, value in vars(config).items() if name != "group_name"}
