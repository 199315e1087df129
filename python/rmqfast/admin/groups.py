"""Consumer groups: made, changed, removed, listed.

Source: `DefaultMQAdminExtImpl.createAndUpdateSubscriptionGroupConfig`, `deleteSubscriptionGroup`,
`getAllSubscriptionGroup`.
"""

from __future__ import annotations

from typing import Any

from rmqfast.admin.asking import DLQ_PREFIX, RETRY_PREFIX
from rmqfast.admin.topics import MAX_STATS_BYTES, Topics
from rmqfast.client.instance.validators import check_group
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.remoting import RequestCode, fastjson
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.response_code import ResponseCode
from rmqfast.store.config import SubscriptionGroupConfig


class Groups(Topics):
    """What an administrator does about consumer groups."""

    def create_group(
        self, group: str | SubscriptionGroupConfig, *, cluster: str | None = None, **settings: Any
    ) -> None:
        """Makes a group on the masters of a cluster; one that is there gets what is given, and defaults.

        Args:
            group: Its name, or all of it.
            cluster: The cluster; all of them unless given.
            **settings: Fields of `SubscriptionGroupConfig`, as `retry_max_times=3`.

        Raises:
            ClientError: A name that groups may not have, no such cluster.
            ArgumentError: A setting that there is not.
            ResponseError: A broker refuses.

        Source: `UpdateSubGroupSubCommand`.
        """
        config = group if isinstance(group, SubscriptionGroupConfig) else _config(group, settings)
        check_group(config.group_name)
        for broker in self._masters(cluster):
            self._put_group(broker.address, config)

    def update_group(self, group: str, *, cluster: str | None = None, **settings: Any) -> None:
        """Changes a group; what is not given stays as it is, broker by broker.

        Args:
            group: The group.
            cluster: The cluster; all of them unless given.
            **settings: Fields of `SubscriptionGroupConfig`, as `retry_max_times=3`.

        Raises:
            ClientError: 26, no broker has the group.
            ArgumentError: A setting that there is not.
            ResponseError: A broker refuses.
        """
        found = False
        for broker in self._masters(cluster):
            config = self._groups_of(broker.address).get(group)
            if config is not None:
                found = True
                self._put_group(broker.address, _config(group, {**_settings(config), **settings}))
        if not found:
            raise ClientError(
                f"subscription group [{group}] does not exist",
                response_code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                next_step=f"create_group({group!r}) makes it",
            )

    def delete_group(self, group: str, *, cluster: str | None = None, remove_offsets: bool = False) -> None:
        """Removes a group from the masters of a cluster, and its topics of retries and of dead letters.

        Args:
            group: The group.
            cluster: The cluster; all of them unless given.
            remove_offsets: Whether its offsets go, too: else a new group of that name goes on where it stopped.

        Raises:
            ResponseError: A broker refuses.

        Source: `DeleteSubscriptionGroupCommand`.
        """
        fields = {"groupName": group, "removeOffset": remove_offsets, "cleanOffset": remove_offsets}
        for broker in self._masters(cluster):
            self._ask(broker.address, RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)
        for topic in (RETRY_PREFIX + group, DLQ_PREFIX + group):
            self.delete_topic(topic, cluster=cluster)

    def groups(self, *, cluster: str | None = None) -> dict[str, SubscriptionGroupConfig]:
        """The groups of all masters by name, those that every broker has, too; of several brokers the first one counts.

        Args:
            cluster: Only those of a cluster.

        Source: `DefaultMQAdminExtImpl.getAllSubscriptionGroup`.
        """
        tables = [self._groups_of(broker.address) for broker in self._masters(cluster)]
        return dict(sorted({name: config for table in reversed(tables) for name, config in table.items()}.items()))

    def _put_group(self, address: str, config: SubscriptionGroupConfig) -> None:
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        self._ask(address, code, None, fastjson.encode(config.to_json()))

    def _groups_of(self, address: str) -> dict[str, SubscriptionGroupConfig]:
        body = self._ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, slow=True).body
        table = JsonObject.of_body(body, most=MAX_STATS_BYTES).object("subscriptionGroupTable")
        names = [] if table is None else table.names()
        return {name: _config_of(name, table.member(name)) for name in names if table is not None}


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
        known = ", ".join(sorted(set(_settings(SubscriptionGroupConfig(group_name=group))) - {"other"}))
        raise ArgumentError(f"expected some of {known}, got {', '.join(settings)}") from error


def _settings(config: SubscriptionGroupConfig) -> dict[str, Any]:
    return {name: value for name, value in vars(config).items() if name != "group_name"}
