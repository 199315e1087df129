"""The requests of a client to brokers and name servers.

Source: `MQClientAPIImpl`, `ClusterInfo`, `RemotingCommand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rmqfast._native import NameServers
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Connections, Header, RequestCode, Response, ResponseCode, fastjson
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.heartbeat_data import HeartbeatData
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData

# limits of answers: names in a list, bytes of a body
_MOST = 1_000_000
_MOST_BYTES = 64 << 20


class ClientApi:
    """One method for each request. The first argument is the broker's address; name servers are chosen automatically.

    An error answer raises `ResponseError` with code and remark; a missing answer raises another `RemotingError`.
    """

    def __init__(self, connections: Connections, name_servers: NameServers, *, timeout: float = 3.0) -> None:
        self.connections: Final = connections
        self.name_servers: Final = name_servers
        self.timeout: Final = timeout

    def ask(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,
    ) -> Response:
        """Sends a request to a broker, and returns the answer.

        Raises:
            ResponseError: The answer is an error.
            RemotingError: There is no answer.
        """
        fields, wait = as_fields(ext_fields or {}), self._wait(timeout)
        return checked(self.connections.request(address, code, fields, body, timeout=wait), address)

    def ask_behind(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,
    ) -> Response:
        """Like `ask`, but the broker gets this request after earlier oneway requests, over the same connection."""
        fields, wait = as_fields(ext_fields or {}), self._wait(timeout)
        return checked(self.connections.control(address, code, fields, body, timeout=wait), address)

    def ask_name_server(
        self, code: int, ext_fields: Mapping[str, object] | None = None, *, timeout: float | None = None
    ) -> Response:
        """Sends a request to the chosen name server, or else to the next that answers. Returns the answer.

        Raises:
            ResponseError: The answer is an error.
            ClientError: No name server is configured.
            RemotingError: There is no answer.
        """
        return checked(self.name_servers.request(code, as_fields(ext_fields or {}), timeout=self._wait(timeout)))

    def _wait(self, timeout: float | None) -> float:
        return self.timeout if timeout is None else timeout

    # Routes: name servers answer.

    def topic_route(self, topic: str, *, timeout: float | None = None) -> TopicRouteData:
        """Returns the route of a topic.

        Raises:
            ResponseError: Code 17: the topic does not exist.
            ClientError: No name server is configured.
            RemotingError: No name server answers.
        """
        return self.name_servers.route(topic, self._wait(timeout))

    def readable_queues(self, topic: str, *, timeout: float | None = None) -> tuple[MessageQueue, ...]:
        """Returns the queues that consumers may read, sorted; fails like `topic_route`."""
        return self.name_servers.readable_queues(topic, self._wait(timeout))

    def cluster_info(self, *, timeout: float | None = None) -> ClusterInfo:
        """Returns all clusters and brokers."""
        return cluster_info_of_body(self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO, timeout=timeout).body)

    def all_topics(self, *, timeout: float | None = None) -> tuple[str, ...]:
        """Returns all topics, including system, retry and dead-letter topics."""
        return topics_of_body(
            self.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, timeout=timeout).body
        )

    def topics_of_cluster(self, cluster: str, *, timeout: float | None = None) -> tuple[str, ...]:
        """Returns the topics of a cluster. Empty for an unknown cluster."""
        fields = {"cluster": cluster}
        return topics_of_body(self.ask_name_server(RequestCode.GET_TOPICS_BY_CLUSTER, fields, timeout=timeout).body)

    # Offsets of one queue: the queue's broker name is not sent.

    def query_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, *, timeout: float | None = None
    ) -> int | None:
        """Returns the committed offset of a group. None if the broker has no offset (code 22).

        Raises:
            ResponseError: Any other error of the broker.
        """
        fields = {"consumerGroup": group, **_queue(queue)}
        try:
            # after this client's oneway commits, so that the broker has them
            answer = self.ask_behind(address, RequestCode.QUERY_CONSUMER_OFFSET, fields, timeout=timeout)
        except ResponseError as error:
            # the group has no offset yet
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return number_of(answer, "offset")

    def update_consumer_offset(
        self,
        address: str,
        group: str,
        queue: MessageQueue,
        offset: int,
        *,
        oneway: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Commits the offset at which a group continues. With `oneway`, does not wait for an answer."""
        fields = {"consumerGroup": group, **_queue(queue), "commitOffset": offset}
        # a lost commit does no harm: the next one follows within seconds
        if oneway:
            self.connections.send_oneway(address, RequestCode.UPDATE_CONSUMER_OFFSET, as_fields(fields))
        else:
            self.ask_behind(address, RequestCode.UPDATE_CONSUMER_OFFSET, fields, timeout=timeout)

    def max_offset(self, address: str, queue: MessageQueue, *, timeout: float | None = None) -> int:
        """Returns the offset after the last message."""
        return number_of(self.ask(address, RequestCode.GET_MAX_OFFSET, _queue(queue), timeout=timeout), "offset")

    def min_offset(self, address: str, queue: MessageQueue, *, timeout: float | None = None) -> int:
        """Returns the offset of the first message."""
        return number_of(self.ask(address, RequestCode.GET_MIN_OFFSET, _queue(queue), timeout=timeout), "offset")

    def search_offset(self, address: str, queue: MessageQueue, timestamp: int, *, timeout: float | None = None) -> int:
        """Returns the offset of the message stored nearest to a time. RocketMQ 5: of the first one since that time."""
        fields = {**_queue(queue), "timestamp": timestamp}
        return number_of(self.ask(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields, timeout=timeout), "offset")

    def earliest_store_time(self, address: str, queue: MessageQueue, *, timeout: float | None = None) -> int:
        """Returns the store time of the first message, in milliseconds since 1970. -1 if the queue is empty."""
        code = RequestCode.GET_EARLIEST_MSG_STORETIME
        return number_of(self.ask(address, code, _queue(queue), timeout=timeout), "timestamp")

    # Groups and their members: these share one connection, because the broker ties a client to its connection.

    def send_heartbeat(self, address: str, heartbeat: HeartbeatData, *, timeout: float | None = None) -> int:
        """Registers this client's producers and consumers at a broker. Returns the number of the broker's version."""
        body = heartbeat.encode()
        answer = self.connections.control(address, RequestCode.HEART_BEAT, None, body, timeout=self._wait(timeout))
        return checked(answer, address).version

    def unregister_client(
        self,
        address: str,
        client_id: str,
        *,
        producer_group: str | None = None,
        consumer_group: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Unregisters a client from one of its groups."""
        fields = {"clientID": client_id, "producerGroup": producer_group, "consumerGroup": consumer_group}
        self.ask_behind(address, RequestCode.UNREGISTER_CLIENT, fields, timeout=timeout)

    def check_client_config(
        self,
        address: str,
        group: str,
        client_id: str,
        subscription: SubscriptionData,
        *,
        namespace: str = "",
        timeout: float | None = None,
    ) -> None:
        """Asks a broker to compile an SQL92 expression. Raises `ResponseError` if the broker cannot.

        Raises:
            ResponseError: Code 1: SQL92 is disabled. Code 23: the expression is invalid.
        """
        members = {
            "clientId": client_id,
            "group": group,
            "namespace": namespace or None,
            "subscriptionData": subscription.to_json(),
        }
        self.ask(address, RequestCode.CHECK_CLIENT_CONFIG, None, fastjson.encode(members), timeout=timeout)

    def consumer_ids(self, address: str, group: str, *, timeout: float | None = None) -> tuple[str, ...]:
        """Returns the ids of a group's online clients.

        Raises:
            ResponseError: Code 1: the group has no clients.
        """
        fields = {"consumerGroup": group}
        body = self.ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields, timeout=timeout).body
        return JsonObject.of_body(body).texts("consumerIdList", most=_MOST)

    def lock_batch(
        self,
        address: str,
        group: str,
        client_id: str,
        queues: Iterable[MessageQueue],
        *,
        timeout: float | None = None,
    ) -> set[MessageQueue]:
        """Locks queues for this client, or renews their locks. Returns the queues that the client holds now."""
        body = _lock_body(group, client_id, queues)
        # after this client's oneway unlocks, so that none of them undoes this lock
        answer = self.ask_behind(address, RequestCode.LOCK_BATCH_MQ, None, body, timeout=timeout)
        return set(JsonObject.of_body(answer.body).queues("lockOKMQSet", most=_MOST))

    def unlock_batch(
        self,
        address: str,
        group: str,
        client_id: str,
        queues: Iterable[MessageQueue],
        *,
        oneway: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Unlocks queues of this client. With `oneway`, does not wait for an answer."""
        body = _lock_body(group, client_id, queues)
        if oneway:
            self.connections.send_oneway(address, RequestCode.UNLOCK_BATCH_MQ, None, body)
        else:
            # after this client's oneway commits: the next owner starts at these offsets
            self.ask_behind(address, RequestCode.UNLOCK_BATCH_MQ, None, body, timeout=timeout)

    # Single messages: answers hold records of the commit log.

    def consumer_send_back(
        self,
        address: str,
        group: str,
        physical_offset: int,
        *,
        delay_level: int = 0,
        origin_message_id: str | None = None,
        origin_topic: str | None = None,
        max_reconsume_times: int | None = None,
        unit_mode: bool = False,
        timeout: float = 5.0,
    ) -> None:
        """Asks the broker to redeliver a message to a group later: see `SendBack.send`."""
        fields = {
            "offset": physical_offset,
            "group": group,
            "delayLevel": delay_level,
            "originMsgId": origin_message_id,
            "originTopic": origin_topic,
            "unitMode": unit_mode,
            "maxReconsumeTimes": max_reconsume_times,
        }
        self.ask(address, RequestCode.CONSUMER_SEND_MSG_BACK, fields, timeout=timeout)

    def end_transaction(
        self,
        address: str,
        group: str,
        *,
        queue_offset: int,
        physical_offset: int,
        end: int,
        message_id: str,
        transaction_id: str | None = None,
        from_check: bool = False,
        oneway: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Reports the state of a transaction. `end`: 8 commits, 12 rolls back, 0 makes the broker ask again later."""
        fields = {
            "producerGroup": group,
            "tranStateTableOffset": queue_offset,
            "commitLogOffset": physical_offset,
            "commitOrRollback": end,
            "fromTransactionCheck": from_check,
            "msgId": message_id,
            "transactionId": transaction_id,
        }
        if oneway:
            self.connections.send_oneway(address, RequestCode.END_TRANSACTION, as_fields(fields))
        else:
            self.ask(address, RequestCode.END_TRANSACTION, fields, timeout=timeout)

    def view_message(self, address: str, physical_offset: int, *, timeout: float | None = None) -> bytes:
        """Returns the record of the message at a physical offset.

        Raises:
            ResponseError: Code 1: there is no message.
        """
        return self.ask(address, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": physical_offset}, timeout=timeout).body

    def query_message(
        self,
        address: str,
        topic: str,
        key: str,
        *,
        max_messages: int = 32,
        begin_timestamp: int = 0,
        end_timestamp: int = (1 << 63) - 1,
        is_unique_key: bool = False,
        timeout: float | None = None,
    ) -> Response:
        """Returns records that may have a key. Callers must compare keys, since different keys can have the same hash.

        Args:
            address: The broker.
            topic: The topic.
            key: One of the message's keys, or the producer's message id.
            max_messages: Maximum number of messages.
            begin_timestamp: Earliest store time, in milliseconds since 1970.
            end_timestamp: Latest store time.
            is_unique_key: Whether the key is a message id.
            timeout: Seconds to wait.

        Raises:
            ResponseError: Code 22: no message was found.
        """
        fields = {
            "topic": topic,
            "key": key,
            "maxNum": max_messages,
            "beginTimestamp": begin_timestamp,
            "endTimestamp": end_timestamp,
            "_UNIQUE_KEY_QUERY": is_unique_key,
        }
        return self.ask(address, RequestCode.QUERY_MESSAGE, fields, timeout=timeout)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    brokers: Mapping[str, BrokerData]
    clusters: Mapping[str, tuple[str, ...]]


def cluster_info_of_body(body: bytes) -> ClusterInfo:
    """Parses clusters and brokers. Raises `ResponseError` if the answer is malformed."""
    members = JsonObject.of_body(body, most=_MOST_BYTES)
    brokers, clusters = members.object("brokerAddrTable"), members.object("clusterAddrTable")
    return ClusterInfo(
        {} if brokers is None else {name: BrokerData.from_json(brokers.member(name)) for name in brokers.names()},
        {} if clusters is None else {name: clusters.texts(name, most=_MOST) for name in clusters.names()},
    )


def topics_of_body(body: bytes) -> tuple[str, ...]:
    """Parses names of topics. Raises `ResponseError` if the answer is malformed."""
    return JsonObject.of_body(body, most=_MOST_BYTES).texts("topicList", most=_MOST)


def as_fields(values: Mapping[str, object]) -> dict[str, str]:
    """Converts header fields to strings. Fields that are None are left out."""
    # as in Java, null fields are not sent
    return {name: _text(value) for name, value in values.items() if value is not None}


def checked(response: Response, address: str | None = None) -> Response:
    """Returns the response if its code is SUCCESS. Otherwise raises `ResponseError`."""
    if response.code == ResponseCode.SUCCESS:
        return response
    raise ResponseError(response.code, response.remark or "", address)


def _text(value: object) -> str:
    # Java parses "true" and "false"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _queue(queue: MessageQueue) -> dict[str, object]:
    return {"topic": queue.topic, "queueId": queue.queue_id}


def number_of(answer: Response, name: str) -> int:
    """Returns a field of an answer."""
    return Header(answer.ext_fields or {}).number(name)


def _lock_body(group: str, client_id: str, queues: Iterable[MessageQueue]) -> bytes:
    listed = [{"brokerName": q.broker_name, "queueId": q.queue_id, "topic": q.topic} for q in queues]
    return fastjson.encode({"clientId": client_id, "consumerGroup": group, "mqSet": listed})
