"""Answers the requests that create, change, delete and list consumer groups.

Source: RocketMQ's `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.offsets.consumer_offset_manager import ConsumerOffsetManager
from rmqfast.broker.statistics.broker_stats import BrokerStats
from rmqfast.broker.topics.subscription_group_manager import SubscriptionGroupManager
from rmqfast.errors import ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.protocol.json_object import INT, JsonObject
from rmqfast.store.config import SubscriptionGroupConfig

_log = logger_of(__name__)
#: Sent by mqadmin of 5.x; 4.9.4 does not know this code.
GET_SUBSCRIPTIONGROUP_CONFIG = 352
MAX_RETRY_QUEUES = 65_536


class SubscriptionGroupProcessor:
    """Answers requests 200, 201 and 207, and 352 of RocketMQ 5."""

    def __init__(
        self,
        groups: SubscriptionGroupManager,
        offsets: ConsumerOffsetManager,
        stats: BrokerStats,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._stats = stats
        self._config = config

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.update_and_create_subscription_group,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self.get_all_subscription_group,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.delete_subscription_group,
            GET_SUBSCRIPTIONGROUP_CONFIG: self.get_subscription_group,
        }

    def update_and_create_subscription_group(self, request: Request) -> Response:
        group = group_of(request.body)
        _log.info("%s makes or changes %s", request.channel.remote_address, group)
        self._groups.update(group)
        return Response()

    def get_all_subscription_group(self, _request: Request) -> Response:
        return Response(body=encode(self._groups.wrapper()))

    def delete_subscription_group(self, request: Request) -> Response:
        """Answers request 207: deletes a group and, if requested, its offsets."""
        header = Header(request.ext_fields)
        name = header.text("groupName")
        _log.info("%s deletes the consumer group %r", request.channel.remote_address, name[:300])
        self._groups.delete(name)
        # The name of the field depends on the client's release.
        if header.flag("removeOffset") or header.flag("cleanOffset"):
            self._offsets.remove(name)
        if self._config().flag("autoDeleteUnusedStats"):
            self._stats.on_group_deleted(name)
        return Response()

    def get_subscription_group(self, request: Request) -> Response:
        name = Header(request.ext_fields).text("group")
        group = self._groups.get(name)
        if group is None:
            remark = f"No group in this broker. group: {name}"
            raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        return Response(body=encode(group.to_json()))


def group_of(body: bytes) -> SubscriptionGroupConfig:
    """Parses a group. Missing fields and nulls get defaults. Raises `ResponseError` 1 for a malformed field."""
    members = JsonObject.of_body(body)
    default = SubscriptionGroupConfig(group_name="")
    within_int = (-INT, INT - 1)
    return SubscriptionGroupConfig(
        group_name=members.optional_text("groupName") or "",
        consume_enable=members.flag("consumeEnable", default=default.consume_enable),
        consume_from_min_enable=members.flag("consumeFromMinEnable", default=default.consume_from_min_enable),
        consume_broadcast_enable=members.flag("consumeBroadcastEnable", default=default.consume_broadcast_enable),
        notify_consumer_ids_changed_enable=members.flag(
            "notifyConsumerIdsChangedEnable", default=default.notify_consumer_ids_changed_enable
        ),
        retry_queue_nums=members.number_within("retryQueueNums", 0, MAX_RETRY_QUEUES, default=default.retry_queue_nums),
        retry_max_times=members.number_within("retryMaxTimes", *within_int, default=default.retry_max_times),
        broker_id=members.number("brokerId", default.broker_id),
        which_broker_when_consume_slowly=members.number(
            "whichBrokerWhenConsumeSlowly", default.which_broker_when_consume_slowly
        ),
    )
