"""Answers heartbeats, unregistrations and filter checks, and requests for a group's online clients.

Source: RocketMQ's `ClientManageProcessor`, `ClientHousekeepingService`, `ConsumerManageProcessor`,
`AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast._native import DataPlane
from rmqfast.broker.clients.client_channel import ClientChannel, GroupChange
from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.clients.name_quota import NameQuota
from rmqfast.broker.clients.producer_manager import ProducerManager
from rmqfast.errors import ResponseError
from rmqfast.remoting import Channel, Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData, HeartbeatData
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig

#: Bit of a topic's system flag: a unit subscribes to the topic (`TopicSysFlag.FLAG_UNIT_SUB`).
UNIT_SUB = 2

#: Returns the configuration of a group, creating the group if allowed; None otherwise.
FindGroup = Callable[[str], SubscriptionGroupConfig | None]
#: Creates the topics among these that do not exist.
CreateRetryTopics = Callable[[list[TopicConfig]], object]


class ClientProcessor:
    """Answers heartbeats, and handles closed connections."""

    def __init__(
        self,
        data_plane: DataPlane,
        *,
        consumers: ConsumerManager,
        producers: ProducerManager,
        filters: ConsumerFilterManager,
        find_group: FindGroup,
        is_known: Callable[[str], bool],
        names: NameQuota,
        create_retry_topics: CreateRetryTopics,
        now: Callable[[], int],
        notify: Callable[[GroupChange], object] = GroupChange.notify,
    ) -> None:
        self._consumers = consumers
        self._producers = producers
        self._filters = filters
        self._find_group = find_group
        self._is_known = is_known
        self._names = names
        self._create_retry_topics = create_retry_topics
        self._data_plane = data_plane
        self._now = now
        self._notify_clients = notify

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.HEART_BEAT: self.heartbeat,
            RequestCode.UNREGISTER_CLIENT: self.unregister,
            RequestCode.CHECK_CLIENT_CONFIG: self.check_config,
        }

    def heartbeat(self, request: Request) -> Response:
        """Answers request 34: applies a heartbeat completely, or refuses it."""
        now = self._now()
        heartbeat = HeartbeatData.of_body(request.body, now=now)
        client = ClientChannel(request.channel, heartbeat.client_id, request.language, request.version, now)
        # Refuse before registering anything, so that no heartbeat is applied only in part.
        self._consumers.check_room(client.channel, (data.group_name for data in heartbeat.consumers))
        self._producers.check_room(client.channel, heartbeat.producers)
        for data in heartbeat.consumers:
            self._filters.check_room(data.group_name, data.subscriptions)
        # Only unknown groups spend from the quota of new names.
        new = {data.group_name for data in heartbeat.consumers if not self._is_known(data.group_name)}
        self._names.take(client.channel, len(new))
        self._data_plane.put_client(client.channel.id, client.client_id)
        configs = [self._find_group(data.group_name) for data in heartbeat.consumers]
        # mqadmin finds a group's brokers only by the route of its retry topic.
        self._create_retry_topics(
            [_retry_topic(data, config) for data, config in zip(heartbeat.consumers, configs, strict=True) if config]
        )
        for data, config in zip(heartbeat.consumers, configs, strict=True):
            is_notify_enabled = config is None or config.notify_consumer_ids_changed_enable
            self._notify(self._consumers.register(client, data, is_notify_enabled=is_notify_enabled))
        for group in heartbeat.producers:
            self._producers.register(client, group)
        # If the connection ended before this registration, no later event would remove the client.
        if not client.channel.is_open:
            self.on_closed(client.channel)
        return Response()

    def unregister(self, request: Request) -> Response:
        """Answers request 35. Finds the client by its connection, since the C# client does not send its id."""
        header = Header(request.ext_fields)
        producer_group = header.optional_text("producerGroup")
        if producer_group is not None:
            self._producers.unregister(producer_group, request.channel)
        consumer_group = header.optional_text("consumerGroup")
        if consumer_group is not None:
            self._unregister_consumer(consumer_group, request.channel)
        return Response(ext_fields={})

    def check_config(self, request: Request) -> Response:
        """Answers request 46: refuses a subscription whose expression the broker cannot compile."""
        members = JsonObject.of_body(request.body).object("subscriptionData") if request.body else None
        if members is None:
            return Response()
        subscription = SubscriptionData.from_json(members, now=self._now())
        if subscription.is_tag_type:
            return Response()
        refusal = self._data_plane.check_filter(subscription.expression_type, subscription.sub_string)
        if refusal is not None:
            raise ResponseError(*refusal)
        return Response()

    def on_closed(self, channel: Channel) -> None:
        """Removes the client of a closed connection, and notifies the other clients of its groups."""
        self._names.forget(channel)
        self._data_plane.remove_client(channel.id)
        self._producers.disconnect(channel)
        for change in self._consumers.disconnect(channel, now=self._now()):
            self._notify_clients(change)

    def scan(self) -> None:
        """Closes connections that had no heartbeat for 120 seconds. Call it every 10 seconds."""
        now = self._now()
        for channel in {*self._producers.scan(now), *self._consumers.scan(now)}:
            channel.close()

    def _unregister_consumer(self, group: str, channel: Channel) -> None:
        config = self._find_group(group)
        is_notify_enabled = config is None or config.notify_consumer_ids_changed_enable
        self._notify(self._consumers.unregister(group, channel, now=self._now(), is_notify_enabled=is_notify_enabled))

    def _notify(self, change: GroupChange | None) -> None:
        if change is not None:
            self._notify_clients(change)


def _retry_topic(data: ConsumerData, config: SubscriptionGroupConfig) -> TopicConfig:
    queues = config.retry_queue_nums
    return TopicConfig(
        topic_name=f"%RETRY%{data.group_name}",
        read_queue_nums=queues,
        write_queue_nums=queues,
        topic_sys_flag=UNIT_SUB if data.unit_mode else 0,
    )


class ConnectionProcessor:
    """Answers requests for the online clients of a group."""

    def __init__(self, consumers: ConsumerManager, producers: ProducerManager) -> None:
        self._consumers = consumers
        self._producers = producers

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.consumer_list,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumer_connections,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producer_connections,
            RequestCode.GET_ALL_PRODUCER_INFO: self.all_producers,
        }

    def consumer_list(self, request: Request) -> Response:
        """Answers request 38: the client ids of a group, among which its consumers distribute the queues."""
        group = Header(request.ext_fields).text("consumerGroup")
        client_ids = self._consumers.client_ids(group)
        if not client_ids:
            # Java clients take this error for "no rebalance now" and keep their queues.
            return Response(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}", ext_fields={})
        return Response(ext_fields={}, body=encode({"consumerIdList": client_ids}))

    def consumer_connections(self, request: Request) -> Response:
        name = Header(request.ext_fields).text("consumerGroup")
        group = self._consumers.group(name)
        if group is None:
            raise ResponseError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
        return Response(body=encode(group.to_json()))

    def producer_connections(self, request: Request) -> Response:
        group = Header(request.ext_fields).text("producerGroup")
        clients = self._producers.clients(group)
        if clients is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
        return Response(body=encode({"connectionSet": [client.connection() for client in clients]}))

    def all_producers(self, request: Request) -> Response:  # noqa: ARG002 - nothing is asked but by the code
        return Response(body=encode({"data": self._producers.table()}))
