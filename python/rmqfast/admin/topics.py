"""Topics: creates, changes, deletes and describes topics.

Source: `DefaultMQAdminExtImpl`, `TopicOffset`, `TopicStatsTable`, `UpdateTopicSubCommand`, `UpdateTopicPermSubCommand`,
`DeleteTopicSubCommand`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rmqfast.admin.admin_client import AdminClient, BrokerAddress
from rmqfast.admin.questions import Question
from rmqfast.client.instance.validators import check_topic
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from rmqfast.store.config import TopicConfig

#: Topic whose settings new topics inherit (`AutoCreateTopic`).
DEFAULT_TOPIC = "TBW102"
MAX_QUEUES = 1 << 20
MAX_STATS_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class TopicOffset:
    """The offsets of a queue.

    Attributes:
        min_offset: Offset of the first message still stored.
        max_offset: End of the queue.
        last_update_timestamp: Store time of the last message, in milliseconds since 1970; 0 for an empty queue.
    """

    topic: str
    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int
    last_update_timestamp: int

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.topic, self.broker_name, self.queue_id)


class Topics:
    """`admin.topics`: creates, changes, deletes and describes topics."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def create(
        self,
        topic: str,
        queues: int = 4,
        *,
        read_queues: int | None = None,
        perm: int = 6,
        cluster: str | None = None,
        broker_names: Sequence[str] | None = None,
        order: bool = False,
    ) -> None:
        """Creates a topic on the masters of a cluster, or sets the queues and permissions of an existing topic.

        Args:
            topic: Name of the topic.
            queues: Queues per broker.
            read_queues: Queues that consumers see. Default: `queues`.
            perm: Sum of 4 (read), 2 (write) and 1 (new topics inherit from it).
            cluster: Default: all clusters.
            broker_names: Restricts the change to these brokers of the cluster.
            order: Marks the topic as ordered, which brokers ignore.

        Raises:
            ClientError: The name is illegal, or the cluster or a broker does not exist.
        """
        check_topic(topic)
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=queues if read_queues is None else read_queues,
            write_queue_nums=queues,
            perm=perm,
            order=order,
        )
        for broker in self._masters(cluster, broker_names):
            put_topic(self._client, broker.address, config)

    def update(
        self,
        topic: str,
        *,
        queues: int | None = None,
        read_queues: int | None = None,
        perm: int | None = None,
        broker_names: Sequence[str] | None = None,
    ) -> None:
        """Changes a topic on each of its brokers. Settings that are not given stay.

        Args:
            topic: The topic; `ResponseError` 17 if it does not exist.
            queues: Queues for producers, and for consumers unless `read_queues` is given.
            read_queues: Queues for consumers.
            perm: Sum of 4 (read) and 2 (write).
            broker_names: Restricts the change to these brokers.
        """
        route = self._client.route(topic)
        addresses = dict(self._client.addresses(route.broker_datas))
        for data in route.queue_datas:
            if broker_names is None or data.broker_name in broker_names:
                config = _with_changes(topic, data, queues=queues, read_queues=read_queues, perm=perm)
                put_topic(self._client, addresses[data.broker_name], config)

    def delete(self, topic: str, *, cluster: str | None = None) -> None:
        """Deletes a topic from a cluster's masters and all name servers. Brokers refuse to delete system topics."""
        # Brokers first: a broker that still has the topic would register it again.
        for broker in self._client.masters(cluster):
            self._client.ask(broker.address, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic})
        fields = {"topic": topic, "clusterName": cluster}
        # Name servers do not share their routes, so the topic must be deleted at each of them.
        for address in self._client.api.name_servers.addresses:
            self._client.ask(address, RequestCode.DELETE_TOPIC_IN_NAMESRV, fields)

    def all(self, *, cluster: str | None = None) -> list[str]:
        """Returns the names of all topics, including system, retry and dead-letter topics."""
        api, timeout = self._client.api, self._client.timeout
        names = api.all_topics(timeout=timeout) if cluster is None else api.topics_of_cluster(cluster, timeout=timeout)
        return sorted(set(names))

    def route(self, topic: str) -> TopicRouteData:
        """Returns the brokers and queues of a topic. Raises `ResponseError` 17 if the topic does not exist."""
        return self._client.route(topic)

    def status(self, topic: str) -> list[TopicOffset]:
        """Returns the offsets of a topic's queues, sorted. Raises `ResponseError` 17 if the topic does not exist."""
        bodies = [
            self._client.ask(*status_question(broker.address, topic), slow=True).body
            for broker in self._client.brokers_of(topic)
        ]
        offsets = (item for body in bodies for item in topic_offsets_of_body(body))
        return sorted(offsets, key=lambda item: (item.topic, item.broker_name, item.queue_id))

    def _masters(self, cluster: str | None, broker_names: Sequence[str] | None) -> list[BrokerAddress]:
        masters = self._client.masters(cluster)
        if broker_names is None:
            return masters
        selection = [broker for broker in masters if broker.broker_name in broker_names]
        unknown = set(broker_names) - {broker.broker_name for broker in selection}
        if unknown:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"no master of the name {', '.join(sorted(unknown))}")
        return selection


def status_question(address: str, topic: str) -> Question:
    """Returns the request for the offsets of a topic's queues."""
    return Question(address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})


def put_topic(client: AdminClient, address: str, config: TopicConfig) -> None:
    """Creates a topic at a broker, or replaces its settings."""
    fields = {
        "topic": config.topic_name,
        "defaultTopic": DEFAULT_TOPIC,
        "readQueueNums": config.read_queue_nums,
        "writeQueueNums": config.write_queue_nums,
        "perm": config.perm,
        "topicFilterType": config.topic_filter_type,
        "topicSysFlag": config.topic_sys_flag,
        "order": config.order,
    }
    client.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)


def topic_offsets_of_body(body: bytes) -> list[TopicOffset]:
    """Parses `TopicStatsTable`. Raises `ResponseError` if a JSON field has the wrong type."""
    table = JsonObject.of_body(body, most=MAX_STATS_BYTES).objects_by_queue("offsetTable", most=MAX_QUEUES)
    return [
        TopicOffset(
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            item.number("minOffset", 0),
            item.number("maxOffset", 0),
            item.number("lastUpdateTimestamp", 0),
        )
        for queue, item in table.items()
    ]


def topic_configs_of_body(body: bytes) -> dict[str, TopicConfig]:
    """Parses topics by name. Raises `ResponseError` if a JSON field has the wrong type."""
    table = JsonObject.of_body(body, most=MAX_STATS_BYTES).object("topicConfigTable")
    return {} if table is None else {name: _config_of(name, table.member(name)) for name in table.names()}


def _config_of(name: str, members: JsonObject) -> TopicConfig:
    default = TopicConfig(topic_name=name)
    return TopicConfig(
        topic_name=name,
        read_queue_nums=members.number("readQueueNums", default.read_queue_nums),
        write_queue_nums=members.number("writeQueueNums", default.write_queue_nums),
        perm=members.number("perm", default.perm),
        topic_filter_type=members.optional_text("topicFilterType") or default.topic_filter_type,
        topic_sys_flag=members.number("topicSysFlag", default.topic_sys_flag),
        order=members.flag("order"),
    )


def _with_changes(
    topic: str, data: QueueData, *, queues: int | None, read_queues: int | None, perm: int | None
) -> TopicConfig:
    config = TopicConfig(
        topic_name=topic,
        read_queue_nums=data.read_queue_nums,
        write_queue_nums=data.write_queue_nums,
        perm=data.perm,
        topic_sys_flag=data.topic_sys_flag,
    )
    read_queue_nums = queues if read_queues is None else read_queues
    settings: dict[str, Any] = {"read_queue_nums": read_queue_nums, "write_queue_nums": queues, "perm": perm}
    return replace(config, **{name: value for name, value in settings.items() if value is not None})
