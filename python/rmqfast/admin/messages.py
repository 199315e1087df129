"""Single messages: by id, by key, by place; their traces, and what became of them.

Source: `MQAdminImpl.viewMessage`, `queryMessage`, `queryMessageByUniqKey`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rmqfast._native import parse_message_id, pull_fields
from rmqfast.admin.admin_client import SLOW, AdminClient, BrokerAddress
from rmqfast.admin.groups import Groups, consumers_at
from rmqfast.admin.message_track import MessageTrack, track_of
from rmqfast.arguments import Time, milliseconds_of
from rmqfast.client.instance.broker_requests import decode_messages, decode_viewed
from rmqfast.client.pulling.single_pulls import read_answer
from rmqfast.client.trace import TRACE_TOPIC, TraceView, trace_views
from rmqfast.errors import ArgumentError, ResponseError, UnknownMessageError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: The group that administrators pull as; every broker has it.
TOOLS_GROUP = "TOOLS_CONSUMER"
LATEST = (1 << 63) - 1
#: A subscription that filters nothing.
WHOLE = SubscriptionData(topic="", sub_version=0)


class MessagePlace(NamedTuple):
    """What a broker's id of a message says.

    Attributes:
        address: `ip:port` of the broker that stored it.
        physical_offset: Where it stands in the commit log.
    """

    address: str
    physical_offset: int


class Pulled(NamedTuple):
    """What a pull brought.

    Attributes:
        messages: At the offset that was asked for, or behind it.
        remark: What the broker says of it.
        next_offset: Where the next pull begins.
    """

    messages: list[Any]
    remark: str
    next_offset: int

    def at(self, offset: int) -> Any:
        """The message at an offset, `None` where it is not among those that came."""
        return next((message for message in self.messages if message.queue_offset == offset), None)


class Messages:
    """`admin.messages`: single messages, as `MessageView`s like those of consumers, and what became of them."""

    def __init__(self, client: AdminClient, groups: Groups) -> None:
        self._client, self._groups = client, groups

    def by_id(self, message_id: str, topic: str | None = None) -> Any:
        """The message with an id: the broker's, or with a topic the producer's.

        Raises:
            UnknownMessageError: There is none.
            ArgumentError: No broker's id, and no topic is given.

        Source: `DefaultMQAdminExtImpl.viewMessage`.
        """
        try:
            # both kinds have 32 digits with IPv4: whether it is the broker's only the broker can say
            place = place_of_id(message_id)
        except ArgumentError:
            if topic is None:
                raise
            return self.by_unique_key(topic, message_id)
        try:
            return self._view(place)
        except (ResponseError, UnknownMessageError):
            if topic is None:
                raise
        return self.by_unique_key(topic, message_id)

    def by_key(
        self, topic: str, key: str, *, max_messages: int = 64, begin_timestamp: Time = 0, end_timestamp: Time = LATEST
    ) -> list[Any]:
        """The messages with a key, of all brokers, the oldest first.

        Args:
            topic: The topic.
            key: One of the keys.
            max_messages: How many at most, of each broker.
            begin_timestamp: Stored at this time or later, a time as of `MessageStore.scan`.
            end_timestamp: Stored at this time or earlier.

        Returns:
            None where there are none, with Java an error (208).

        Source: `MQAdminImpl.queryMessage`.
        """
        messages = query(
            self._client,
            self._client.brokers_of(topic),
            topic,
            key,
            is_unique_key=False,
            max_messages=max_messages,
            begin_timestamp=milliseconds_of("begin_timestamp", begin_timestamp),
            end_timestamp=milliseconds_of("end_timestamp", end_timestamp),
        )
        return [message for message in messages if key in (message.keys or "").split(" ")]

    def by_unique_key(self, topic: str, unique_key: str) -> Any:
        """The message with a producer's id: of several, the one that was stored first.

        Raises:
            UnknownMessageError: There is none.

        Source: `MQAdminImpl.queryMessageByUniqKey`.
        """
        listed = query(self._client, self._client.brokers_of(topic), topic, unique_key)
        messages = [message for message in listed if message.msg_id == unique_key]
        if not messages:
            raise UnknownMessageError(f"no message of the topic {topic} has the id {unique_key}")
        # a producer that sends once more, as after a timeout, keeps the id
        return min(messages, key=lambda message: message.store_timestamp)

    def by_offset(self, queue: MessageQueue, offset: int) -> Any:
        """The message at an offset of a queue.

        Raises:
            UnknownMessageError: There is none.
            ResponseError: 17, nobody has the topic; or the broker refuses.

        Source: `QueryMsgByOffsetSubCommand`.
        """
        pulled = pull(self._client, self._client.broker_of(queue.topic, queue.broker_name), queue, offset, WHOLE)
        message = pulled.at(offset)
        if message is None:
            raise UnknownMessageError(
                f"{queue.topic} queue {queue.queue_id} of {queue.broker_name} has no message at offset {offset}: "
                f"{pulled.remark or 'it has others'}"
            )
        return message

    def trace(
        self,
        message_id: str,
        *,
        trace_topic: str = TRACE_TOPIC,
        max_messages: int = 64,
        begin_timestamp: Time = 0,
        end_timestamp: Time = LATEST,
    ) -> list[TraceView]:
        """What became of a message by the traces of those that sent and consumed it, step by step.

        Clients tell it only where `enable_msg_trace` says so, and half a second later or so.

        Args:
            message_id: The id that the producer gave; also one of a batch of this package's.
            trace_topic: Where the clients send traces.
            max_messages: Of the trace topic, how many at most, of each broker; each may have several steps.
            begin_timestamp: Traces stored at this time or later, a time as of `MessageStore.scan`.
            end_timestamp: Traces stored at this time or earlier.

        Returns:
            The steps in the order in which they happened; none where no trace tells of it.

        Raises:
            ResponseError: 17, there is no such trace topic.

        Example:
            >>> import time, rmqfast
            >>> from rmqfast.admin import Admin
            >>> from rmqfast.client.producer import Producer
            >>> with rmqfast.EmbeddedCluster(config={"traceTopicEnable": "true"}) as cluster:
            ...     with Producer("shop", name_server=cluster.name_server, enable_msg_trace=True) as producer:
            ...         sent = producer.send(rmqfast.Message("orders", b"paid", tags="paid"))
            ...     with Admin(name_server=cluster.name_server) as admin:
            ...         (step,) = admin.messages.trace(sent.msg_id)
            >>> step.trace_type.value, step.group, step.topic, step.tags, step.status
            ('Pub', 'shop', 'orders', 'paid', 'success')

        Source: `QueryMsgTraceByIdSubCommand.queryTraceByMsgId`.
        """
        traces = self.by_key(
            trace_topic,
            message_id,
            max_messages=max_messages,
            begin_timestamp=begin_timestamp,
            end_timestamp=end_timestamp,
        )
        return trace_views(message_id, traces)

    def track(self, message: Any, group: str | None = None) -> list[MessageTrack]:
        """What became of a message in a group.

        It is what mqadmin says; `explain` tells more. Without a group: each one that consumes the topic.

        Raises:
            ResponseError: 17, nobody has the topic.

        Source: `DefaultMQAdminExtImpl.messageTrackDetail`.
        """
        groups: Sequence[str] = [group] if group is not None else self._consumers(message.topic)
        return [track_of(self._client, self._groups, message, each) for each in groups]

    def _consumers(self, topic: str) -> Sequence[str]:
        first = self._client.brokers_of(topic)[0]
        return consumers_at(self._client, first.address, topic)

    def _view(self, place: MessagePlace) -> Any:
        address = self._client.translated(place.address)
        try:
            record = self._client.api.view_message(address, place.physical_offset, timeout=self._client.timeout)
        except ResponseError as error:
            raise UnknownMessageError(str(error)) from error
        return decode_viewed(record, place.physical_offset, self._name_of(place.address))

    def _name_of(self, address: str) -> str | None:
        brokers = self._client.cluster_info().brokers
        return next((name for name, broker in brokers.items() if address in broker.addresses.values()), None)


def pull(
    client: AdminClient,
    address: str,
    queue: MessageQueue,
    offset: int,
    subscription: SubscriptionData,
    *,
    max_messages: int = 1,
) -> Pulled:
    """The first messages at an offset or behind it that a subscription wants.

    Raises:
        ResponseError: The broker refuses.
        RemotingProtocolError: It answers with messages of another queue.
    """
    fields = pull_fields(
        TOOLS_GROUP,
        queue,
        offset,
        max_messages,
        expression=subscription.sub_string,
        expression_type=subscription.expression_type,
        sub_version=subscription.sub_version,
    )
    answer = client.api.connections.request(address, RequestCode.PULL_MESSAGE, fields, timeout=client.timeout)
    fetched = read_answer(queue, offset, address, answer)
    # without MIN_OFFSET and MAX_OFFSET as properties: a message looks as it does when looked up by its id
    messages = decode_messages(answer.body, queue.broker_name) if answer.code == ResponseCode.SUCCESS else []
    return Pulled(messages, answer.remark or "", fetched.next_begin_offset)


def query(
    client: AdminClient,
    brokers: Iterable[BrokerAddress],
    topic: str,
    key: str,
    *,
    is_unique_key: bool = True,
    max_messages: int = 32,
    begin_timestamp: int = 0,
    end_timestamp: int = LATEST,
) -> list[Any]:
    """Messages of a topic that brokers find by a key's hash, the oldest first; the caller sees which have that key."""
    messages: list[Any] = []
    for broker in brokers:
        try:
            answer = client.api.query_message(
                broker.address,
                topic,
                key,
                max_messages=max_messages,
                begin_timestamp=begin_timestamp,
                end_timestamp=end_timestamp,
                is_unique_key=is_unique_key,
                timeout=client.timeout * SLOW,
            )
        except ResponseError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
        else:
            messages += decode_messages(answer.body, broker.broker_name)
    # the index has hashes of topic and key: messages of other topics with the same one come, too
    messages = [message for message in messages if message.topic == topic]
    return sorted(messages, key=lambda message: message.store_timestamp)


def place_of_id(message_id: str) -> MessagePlace:
    """The place that a broker's message id names.

    Raises:
        ArgumentError: The text is no id of a broker.
    """
    parts = parse_message_id(message_id)
    if parts is None:
        raise ArgumentError(f"message_id: expected 32 or 56 hexadecimal digits, got {message_id[:60]!r}")
    host, port, physical_offset = parts
    if not 0 < port < 65_536:
        raise ArgumentError(f"message_id: expected a port in it, got {port} in {message_id}: it may be a producer's id")
    return MessagePlace(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", physical_offset)
